/** One caller of this process that wants a lock. */
import { TurngateError } from '../core/errors.ts';
import { whenAborted } from '../runtime/abort.ts';
import type { Due } from '../runtime/due-heap.ts';
import { emit } from '../runtime/events.ts';
import { abortedError } from '../runtime/wait.ts';
import type { Hold, Turn } from './hold.ts';
import { LockHandle } from './lock-handle.ts';
import type { LockTiming } from './options.ts';
import { callLimitMs, type LockParts, storeError } from './parts.ts';

/** The line as its waiters see it. */
export interface WaiterLine {
  /** The store has told this line that another holds the name. */
  readonly seenHeld: boolean;
  /** The last answer of the store was this error. */
  readonly trouble: unknown;
  readonly turn: Turn | undefined;
  giveUp(waiter: Waiter, error: unknown): void;
}

/** A place in the local line, and the promise of its caller. */
export class Waiter implements Due {
  readonly parts: LockParts;
  readonly name: string;
  readonly timing: LockTiming;
  readonly startMonoMs: number;
  readonly endMonoMs: number;
  line!: WaiterLine;
  before: Waiter | undefined;
  behind: Waiter | undefined;
  dueMonoMs = 0;
  dueIndex = -1;
  private readonly forgetSignal: (() => void) | undefined;
  private readonly resolve: (handle: LockHandle) => void;
  private readonly rejectCaller: (error: unknown) => void;

  constructor(
    parts: LockParts,
    name: string,
    timing: LockTiming,
    signal: AbortSignal | undefined,
    resolve: (handle: LockHandle) => void,
    reject: (error: unknown) => void,
  ) {
    this.parts = parts;
    this.name = name;
    this.timing = timing;
    this.startMonoMs = parts.runtime.monoMs();
    this.endMonoMs = this.startMonoMs + timing.waitMs;
    this.resolve = resolve;
    this.rejectCaller = reject;
    this.forgetSignal =
      signal && whenAborted(signal, () => this.line.giveUp(this, abortedError(signal)));
  }

  /** Waits for its turn no longer than it wants to. Safe to repeat. */
  watchClock(): void {
    if (this.dueIndex < 0) {
      const dayMs = 86_400_000; // An endless wait is looked at once a day, and keeps us alive.
      this.parts.waits.set(this, Math.min(this.endMonoMs, this.startMonoMs + dayMs));
    }
  }

  onDue(nowMonoMs: number): void {
    if (nowMonoMs < this.endMonoMs) this.parts.waits.set(this, nowMonoMs + 86_400_000);
    else this.line.giveUp(this, this.overError());
  }

  /** Why a wait that is over failed: somebody else has it, or the store said nothing. */
  overError(): TurngateError {
    const { line, parts } = this;
    if (!line.seenHeld && line.turn === undefined) {
      const limitMs = Math.min(callLimitMs, this.timing.waitMs || callLimitMs);
      return storeError(parts, `gave no answer within ${limitMs} ms`, line.trouble);
    }
    if (line.trouble !== undefined) return storeError(parts, 'stopped answering', line.trouble);
    return this.busyError();
  }

  busyError(): TurngateError {
    const { parts } = this;
    const waitMs = parts.runtime.monoMs() - this.startMonoMs;
    emit('lock', { type: 'busy', lock: this.name, store: parts.store.name, waitMs });
    const message = `lock "${this.name}" is held by another; waited ${this.timing.waitMs} ms`;
    return new TurngateError('BUSY', message, { retryAfterMs: 1_000 });
  }

  /** Takes it off the clock and the signal; from here it is answered exactly once. */
  private settle(): void {
    this.parts.waits.remove(this);
    this.forgetSignal?.();
  }

  serve(hold: Hold): void {
    this.settle();
    this.resolve(new LockHandle(this.parts, hold));
  }

  fail(error: unknown): void {
    this.settle();
    this.rejectCaller(error);
  }
}
