/**
 * Renewal of all holds of one lock client with one timer: due holds travel in one batch. A hold that
 * cannot be renewed is tried again until its local deadline, then lost; an answer "not ours" is lost
 * at once and never re-acquired in silence.
 */
import type { LockStore } from '../contract/lock-store.ts';
import { emit } from '../runtime/events.ts';
import type { Runtime, Timer } from '../runtime/runtime.ts';
import { waitFor } from '../runtime/wait.ts';
import type { Hold } from './hold.ts';

const batchMax = 128; // Keeps one batch short on the server; the rest follows in the next one.

interface Entry {
  readonly renew: boolean;
  dueMonoMs: number;
  busy: boolean;
}

/** Watches holds: renews those that asked for it and tells loss at the deadline. */
export class Renewal {
  private readonly entries = new Map<Hold, Entry>();
  private readonly runtime: Runtime;
  private readonly store: LockStore;
  private timer: Timer | undefined;
  private timerAtMonoMs = Number.POSITIVE_INFINITY;

  constructor(runtime: Runtime, store: LockStore) {
    this.runtime = runtime;
    this.store = store;
  }

  /** How many holds are watched. */
  get size(): number {
    return this.entries.size;
  }

  add(hold: Hold, renew: boolean): void {
    const dueMonoMs = renew ? hold.acquiredMonoMs + hold.attempt.leaseMs / 3 : hold.deadlineMonoMs;
    this.entries.set(hold, { renew, dueMonoMs, busy: false });
    this.schedule(Math.min(dueMonoMs, hold.deadlineMonoMs));
  }

  remove(hold: Hold): void {
    this.entries.delete(hold);
    if (this.entries.size > 0 || this.timer === undefined) return;
    this.timer.cancel();
    this.timer = undefined;
    this.timerAtMonoMs = Number.POSITIVE_INFINITY;
  }

  private schedule(atMonoMs: number): void {
    if (atMonoMs >= this.timerAtMonoMs) return;
    this.timer?.cancel();
    this.timerAtMonoMs = atMonoMs;
    const delayMs = Math.max(1, Math.ceil(atMonoMs - this.runtime.monoMs()));
    // Unreferenced: a held lock must not keep the process alive.
    this.timer = this.runtime.timer(delayMs, false, () => this.tick());
  }

  private tick(): void {
    this.timer = undefined;
    this.timerAtMonoMs = Number.POSITIVE_INFINITY;
    const nowMs = this.runtime.monoMs();
    const due: [Hold, Entry][] = [];
    for (const [hold, entry] of [...this.entries]) {
      if (!hold.isHeld()) {
        this.entries.delete(hold);
        continue;
      }
      // A hold a few milliseconds early joins this batch instead of causing its own.
      if (entry.renew && !entry.busy && entry.dueMonoMs <= nowMs + hold.attempt.leaseMs / 32) {
        due.push([hold, entry]);
      }
    }
    for (let i = 0; i < due.length; i += batchMax) void this.renew(due.slice(i, i + batchMax));
    // After renew(): it has marked its holds busy, so only their deadlines count now.
    if (this.entries.size > 0) this.schedule(this.earliest());
  }

  private earliest(): number {
    let atMs = Number.POSITIVE_INFINITY;
    for (const [hold, entry] of this.entries) {
      const dueMs = entry.renew && !entry.busy ? entry.dueMonoMs : hold.deadlineMonoMs;
      atMs = Math.min(atMs, dueMs, hold.deadlineMonoMs);
    }
    return atMs;
  }

  /** Never rejects: it runs from a timer. */
  private async renew(batch: readonly [Hold, Entry][]): Promise<void> {
    const sentMonoMs = this.runtime.monoMs();
    for (const [hold, entry] of batch) {
      entry.busy = true;
      entry.dueMonoMs = sentMonoMs + hold.attempt.leaseMs / 3;
    }
    const limitMs = Math.min(...batch.map(([hold]) => hold.attempt.leaseMs)) / 3;
    try {
      const call = this.store.renew(batch.map(([hold]) => hold.attempt));
      const answers = await waitFor(this.runtime, call, {
        limitMs,
        onCut: () => new Error(`no answer to a renewal within ${Math.round(limitMs)} ms`),
        keepAlive: false,
      });
      batch.forEach(([hold], i) => {
        if (hold.state !== 'held') return; // Released meanwhile: its answer means nothing.
        if (answers[i] === 'ours') hold.extend(sentMonoMs);
        else hold.lose(answers[i] === 'taken' ? 'taken' : 'lease-ended');
      });
    } catch (error) {
      this.retrySoon(batch, error);
    }
    for (const [hold, entry] of batch) {
      entry.busy = false;
      if (this.entries.has(hold)) this.schedule(Math.min(entry.dueMonoMs, hold.deadlineMonoMs));
    }
  }

  /** A failed renewal is not a loss: try again soon, the deadline decides. */
  private retrySoon(batch: readonly [Hold, Entry][], error: unknown): void {
    for (const [hold, entry] of batch) {
      entry.dueMonoMs = this.runtime.monoMs() + hold.attempt.leaseMs / 12;
      const { name } = hold.attempt;
      emit('lock', { type: 'renewal-failed', lock: name, store: this.store.name, error });
    }
  }
}
