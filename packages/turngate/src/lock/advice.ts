/**
 * Measured hold times per lock name, in bounded memory, and the warnings that follow from them.
 * Short holds that nobody waited for are sampled, so that the fast path pays next to nothing.
 */

import { emit, listened } from '../runtime/events.ts';
import { LruMap } from '../runtime/lru-map.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Turn } from './hold.ts';

const namesMax = 256;
const sampled = 16; // Of the quick uncontended holds one in so many is recorded, with that weight.
const perOctave = 2;
const buckets = 48; // From 0.1 ms up to 0.1 ms × 2^(48 / 2), which is above any hold.
const fadeAt = 8_192; // Then all counts are halved: what was true long ago fades.
const warnFrom = 64;
const warnEveryMs = 60_000;

/** What is known about the holds of one name in this process. */
export interface LockStatistics {
  readonly name: string;
  /** Recent holds, a weighted and fading count. */
  readonly holds: number;
  readonly holdP50Ms: number;
  readonly holdP99Ms: number;
  readonly holdMaxMs: number;
  /** Share of the recent holds that somebody waited for, 0 to 1. */
  readonly contendedShare: number;
  /** The lease of the newest hold. */
  readonly leaseMs: number;
}

class Name {
  readonly counts = new Uint32Array(buckets);
  total = 0;
  contended = 0;
  maxMs = 0;
  leaseMs = 0;
  sinceCheck = 0;
  warnedMonoMs = Number.NEGATIVE_INFINITY;

  clear(): void {
    this.counts.fill(0);
    this.total = 0;
    this.contended = 0;
    this.maxMs = 0;
    this.sinceCheck = 0;
    this.warnedMonoMs = Number.NEGATIVE_INFINITY;
  }
}

/** Collects hold times and warns. */
export class LockAdvice {
  private readonly names = new LruMap<Name>();
  private readonly runtime: Runtime;
  private readonly store: string;
  private quick = 0;

  constructor(runtime: Runtime, store: string) {
    this.runtime = runtime;
    this.store = store;
  }

  /** A hold has ended. */
  note(turn: Turn, holdMs: number, contended: boolean): void {
    const { leaseMs } = turn.attempt;
    const quick = !contended && holdMs < leaseMs / 4;
    if (quick && ++this.quick % sampled !== 0) return;
    this.record(turn, holdMs, contended, quick ? sampled : 1);
  }

  private record(turn: Turn, holdMs: number, contended: boolean, weight: number): void {
    const { name, leaseMs } = turn.attempt;
    const known = this.names.use(name) ?? this.added(name);
    known.counts[bucketOf(holdMs)] = (known.counts[bucketOf(holdMs)] as number) + weight;
    known.total += weight;
    if (contended) known.contended += weight;
    known.maxMs = Math.max(known.maxMs, holdMs);
    known.leaseMs = leaseMs;
    if (known.total > fadeAt) fade(known);
    known.sinceCheck += weight;
    if (known.sinceCheck >= warnFrom && listened('lock')) this.check(turn, known);
  }

  private added(name: string): Name {
    const { names } = this;
    // Whoever goes by many names once each makes no new counters: those of the oldest are used again.
    const [oldest, known] = (names.size === namesMax ? names.oldest() : undefined) ?? [];
    if (oldest !== undefined) names.delete(oldest);
    known?.clear();
    const fresh = known ?? new Name();
    names.set(name, fresh);
    return fresh;
  }

  private check(turn: Turn, known: Name): void {
    known.sinceCheck = 0;
    const nowMs = this.runtime.monoMs();
    if (nowMs - known.warnedMonoMs < warnEveryMs) return;
    const { name, leaseMs } = turn.attempt;
    const holdP99Ms = quantile(known, 0.99);
    const contendedShare = known.contended / known.total;
    const lock = { lock: name, store: this.store, holdP99Ms, contendedShare, leaseMs } as const;
    // With renewal a long hold is no danger; without, half a lease leaves too little for a stall.
    if (!turn.renew && holdP99Ms > leaseMs / 2) emit('lock', { type: 'lease-short', ...lock });
    else if (contendedShare > 0.5) emit('lock', { type: 'hot', ...lock });
    else return;
    known.warnedMonoMs = nowMs;
  }

  /** The names used most recently, newest last. */
  statistics(): readonly LockStatistics[] {
    return this.names.entries().map(([name, known]) => ({
      name,
      holds: known.total,
      holdP50Ms: quantile(known, 0.5),
      holdP99Ms: quantile(known, 0.99),
      holdMaxMs: known.maxMs,
      contendedShare: known.contended / known.total,
      leaseMs: known.leaseMs,
    }));
  }
}

function bucketOf(holdMs: number): number {
  const bucket = Math.ceil(Math.log2(Math.max(holdMs, 0.1) / 0.1) * perOctave);
  return Math.min(buckets - 1, bucket);
}

/** The upper end of the bucket that holds the quantile, never above the largest value seen. */
function quantile(known: Name, share: number): number {
  let left = known.total * share;
  for (let bucket = 0; bucket < buckets; bucket++) {
    left -= known.counts[bucket] as number;
    if (left <= 0) return Math.min(known.maxMs, 0.1 * 2 ** (bucket / perOctave));
  }
  return known.maxMs;
}

function fade(known: Name): void {
  known.total = 0;
  known.contended /= 2;
  for (let bucket = 0; bucket < buckets; bucket++) {
    known.counts[bucket] = (known.counts[bucket] as number) >> 1;
    known.total += known.counts[bucket] as number;
  }
  known.contended = Math.min(known.contended, known.total);
}
