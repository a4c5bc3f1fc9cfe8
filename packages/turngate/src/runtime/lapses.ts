/**
 * Things that end by themselves at times of their own, with one timer for all of them. For stores
 * whose server ends a session or a lease, but not this one grant or place in a queue.
 */
import type { Runtime, Timer } from './runtime.ts';

interface Lapse {
  readonly atMonoMs: number;
  readonly run: () => void;
}

/** Runs each entry once when its time has come, unless it was moved or taken out. */
export class Lapses {
  private readonly entries = new Map<object, Lapse>();
  private readonly runtime: Runtime;
  private timer: Timer | undefined;
  private timerAtMonoMs = Number.POSITIVE_INFINITY;

  constructor(runtime: Runtime) {
    this.runtime = runtime;
  }

  /** How many entries wait. */
  get size(): number {
    return this.entries.size;
  }

  /** Sets or moves the end of `what`. */
  set(what: object, atMonoMs: number, run: () => void): void {
    this.entries.set(what, { atMonoMs, run });
    this.arm(atMonoMs);
  }

  /** Takes it out; nothing runs. */
  delete(what: object): void {
    this.entries.delete(what);
    if (this.entries.size === 0) this.disarm();
  }

  private arm(atMonoMs: number): void {
    if (atMonoMs >= this.timerAtMonoMs) return;
    this.disarm();
    this.timerAtMonoMs = atMonoMs;
    const delayMs = Math.max(1, Math.ceil(atMonoMs - this.runtime.monoMs()));
    // Unreferenced: something that may end later keeps no process alive.
    this.timer = this.runtime.timer(delayMs, false, () => this.sweep());
  }

  private disarm(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.timerAtMonoMs = Number.POSITIVE_INFINITY;
  }

  private sweep(): void {
    this.disarm();
    const nowMs = this.runtime.monoMs();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [what, { atMonoMs, run }] of [...this.entries]) {
      if (atMonoMs > nowMs) {
        nextMs = Math.min(nextMs, atMonoMs);
        continue;
      }
      this.entries.delete(what);
      run();
    }
    if (nextMs !== Number.POSITIVE_INFINITY) this.arm(nextMs);
  }
}
