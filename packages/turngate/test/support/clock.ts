/** Clocks a test can move, and waiting for conditions. */
import { type Runtime, systemRuntime, type Timer } from '../../src/runtime/runtime.ts';

/** The real runtime on clocks that jump when told. */
export function jumpingRuntime(): Runtime & { jump(ms: number): void } {
  let offsetMs = 0;
  return {
    ...systemRuntime,
    wallMs: () => systemRuntime.wallMs() + offsetMs,
    monoMs: () => systemRuntime.monoMs() + offsetMs,
    jump(ms) {
      offsetMs += ms;
    },
  };
}

interface ManualTimer {
  readonly atMs: number;
  readonly run: () => void;
}

/** A runtime in which time passes only by `advance`, and chance is always one half. */
export class ManualRuntime implements Runtime {
  private nowMs = 1_000;
  private ids = 0;
  private readonly timers = new Set<ManualTimer>();

  wallMs(): number {
    return 1_700_000_000_000 + this.nowMs;
  }

  monoMs(): number {
    return this.nowMs;
  }

  random(): number {
    return 0.5;
  }

  randomId(): string {
    return `id${++this.ids}`;
  }

  timer(delayMs: number, _keepAlive: boolean, run: () => void): Timer {
    const timer = { atMs: this.nowMs + delayMs, run };
    this.timers.add(timer);
    return { cancel: () => void this.timers.delete(timer) };
  }

  get pendingTimers(): number {
    return this.timers.size;
  }

  /** Lets time pass; timers run in order, and what they started settles in between. */
  async advance(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    await turn();
    for (;;) {
      const [next] = [...this.timers].sort((a, b) => a.atMs - b.atMs);
      if (next === undefined || next.atMs > endMs) break;
      this.timers.delete(next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
      await turn();
    }
    this.nowMs = endMs;
    await turn();
  }
}

/** Lets everything that is already possible happen. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Waits until a condition holds; fails with `what` when it does not within the limit. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 10_000,
): Promise<void> {
  const endMs = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > endMs) throw new Error(`gave up waiting until ${what}`);
    await pause(5);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A door that something waits behind until the test opens it. */
export function door<T = void>(): { readonly opened: Promise<T>; open(value: T): void } {
  let open!: (value: T) => void;
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
