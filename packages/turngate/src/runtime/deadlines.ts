/**
 * One limit for many calls with one timer for all of them: a call that is answered in time costs an
 * entry in a set, not a timer of its own.
 */
import type { Runtime, Timer } from './runtime.ts';

interface Entry {
  readonly atMonoMs: number;
  readonly cut: () => void;
}

/** Ends calls that take longer than the limit. */
export class Deadlines {
  /** All have the same limit, so the oldest is always first. */
  private readonly entries = new Set<Entry>();
  private readonly runtime: Runtime;
  private readonly limitMs: number;
  private timer: Timer | undefined;

  constructor(runtime: Runtime, limitMs: number) {
    this.runtime = runtime;
    this.limitMs = limitMs;
  }

  /** The call's answer, or the error `onLate` makes. A late answer is dropped. */
  limit<T>(call: Promise<T>, onLate: () => Error): Promise<T> {
    return new Promise((resolve, reject) => {
      const entry = {
        atMonoMs: this.runtime.monoMs() + this.limitMs,
        cut: () => reject(onLate()),
      };
      this.entries.add(entry);
      if (this.timer === undefined) this.arm(this.limitMs);
      call.then(
        (value) => {
          this.entries.delete(entry);
          resolve(value);
        },
        (error: unknown) => {
          this.entries.delete(entry);
          reject(error);
        },
      );
    });
  }

  /** Unreferenced: an open connection keeps the process alive by itself. */
  private arm(delayMs: number): void {
    this.timer = this.runtime.timer(delayMs, false, () => this.sweep());
  }

  private sweep(): void {
    this.timer = undefined;
    const nowMs = this.runtime.monoMs();
    for (const entry of this.entries) {
      if (entry.atMonoMs > nowMs) {
        this.arm(Math.ceil(entry.atMonoMs - nowMs));
        return;
      }
      this.entries.delete(entry);
      entry.cut();
    }
  }
}
