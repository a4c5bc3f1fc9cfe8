/**
 * What this process knows of its attempts at locks, for stores whose server ends a session or a lease
 * but not the one grant or place in a queue that lives in it: those are ended here.
 */
import type { Lapses } from './lapses.ts';
import type { Runtime } from './runtime.ts';

/** One attempt at one name. */
export interface AttemptIdentity {
  readonly name: string;
  readonly owner: string;
}

/** What is known of an attempt, from its first request to its release, lapse or loss. */
export interface AttemptEntry extends AttemptIdentity {
  /** Granted, not only queued. */
  readonly held: boolean;
  /** End of the lease of a grant. */
  deadlineMonoMs: number;
}

/** One word for an attempt: owners have no spaces. */
export function attemptId({ name, owner }: AttemptIdentity): string {
  return `${owner} ${name}`;
}

/** The entries by attempt; each lapses once unless it is prolonged or forgotten before. */
export class Attempts<Entry extends AttemptEntry> {
  private readonly entries = new Map<string, Entry>();
  private readonly runtime: Runtime;
  private readonly lapses: Lapses;
  private readonly onLapse: (entry: Entry) => void;

  constructor(runtime: Runtime, lapses: Lapses, onLapse: (entry: Entry) => void) {
    this.runtime = runtime;
    this.lapses = lapses;
    this.onLapse = onLapse;
  }

  get(attempt: AttemptIdentity): Entry | undefined {
    return this.entries.get(attemptId(attempt));
  }

  /** A copy: entries may be forgotten while it is walked. */
  all(): Entry[] {
    return [...this.entries.values()];
  }

  add(entry: Entry): void {
    this.entries.set(attemptId(entry), entry);
  }

  /** Still the entry of its attempt: it may have lapsed while somebody waited for an answer. */
  isCurrent(entry: Entry): boolean {
    return this.get(entry) === entry;
  }

  /** A place in the queue is kept so long; whoever still wants it asks again before. */
  keepPlace(entry: Entry, queueMs: number): void {
    this.lapses.set(entry, this.runtime.monoMs() + queueMs, () => this.onLapse(entry));
  }

  /** A grant, or its renewal: the lease counts from now. */
  keepHold(entry: Entry, leaseMs: number): void {
    entry.deadlineMonoMs = this.runtime.monoMs() + leaseMs;
    this.lapses.set(entry, entry.deadlineMonoMs, () => this.onLapse(entry));
  }

  /** The lease is over, though its timer may be late. */
  isDue(entry: Entry): boolean {
    return this.runtime.monoMs() >= entry.deadlineMonoMs;
  }

  /** What is left of a hold of this process, never negative; undefined when it is not one. */
  leftMs(attempt: AttemptIdentity): number | undefined {
    const entry = this.get(attempt);
    if (entry?.held !== true) return undefined;
    return Math.max(0, entry.deadlineMonoMs - this.runtime.monoMs());
  }

  forget(entry: Entry): void {
    this.lapses.delete(entry);
    if (this.isCurrent(entry)) this.entries.delete(attemptId(entry));
  }
}
