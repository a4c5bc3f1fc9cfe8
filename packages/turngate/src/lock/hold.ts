/**
 * What this process knows about a lock it has: the turn the store granted, and the holds that use
 * it one after the other. Deadlines by our own clocks; loss is told at once.
 */
import type { LockAnswer, LockAttempt } from '../contract/lock-store.ts';
import { TurngateError } from '../core/errors.ts';
import type { Due } from '../runtime/due-heap.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { LockTiming } from './options.ts';

/** The answer to a release: somebody who released too late is told so, never refused. */
export type ReleaseResult = 'released' | 'expired' | 'taken';

/** Where the next callers of this process wait for a turn to end. */
export interface TurnHome {
  turn: Turn | undefined;
  /** Did anybody wait for it? */
  readonly contended: boolean;
  mayHandOver(turn: Turn, nowMonoMs: number): boolean;
  /** Gives the turn to the next caller. */
  handOver(turn: Turn, nowMonoMs: number): void;
  /** Releases the turn and asks for the next caller in one trip; undefined where that is no use. */
  passOn(turn: Turn, nowMonoMs: number): Promise<LockAnswer> | undefined;
  /** Does whatever is next, the turn being over. */
  proceed(): void;
}

/** Why a hold ended without being released. */
export type LossReason = 'lease-ended' | 'session-ended' | 'taken' | 'max-hold';

type State = 'held' | 'released' | 'given-away' | 'lost';

/** One grant of the store. With local hand-over several holds use it, one at a time. */
export class Turn implements Due {
  readonly attempt: LockAttempt;
  /** The first fence of the grant's block. */
  readonly fence: bigint;
  /** Rounded down, like the deadline: a whole number needs no object of its own. */
  readonly startMonoMs: number;
  /** Where the next ones of this process wait; undefined for shares and adopted locks. */
  readonly line: TurnHome | undefined;
  readonly renew: boolean;
  hold!: Hold;
  /** How often it was handed on inside the process: the offset of the present fence. */
  handed = 0;
  deadlineMonoMs = 0;
  deadlineWallMs = 0;
  /** When the next renewal is due; infinite while one is under way or when there is none. */
  renewMonoMs = Number.POSITIVE_INFINITY;
  /** The last renewal failed: nothing is handed on until one has worked. */
  doubtful = false;
  over = false;
  watched = false;
  dueMonoMs = 0;
  /** Its place in `slot`, or without one in a heap; -1 when in neither. */
  dueIndex = -1;
  /** The renewals it is due with. */
  slot: Turn[] | undefined;

  constructor(
    attempt: LockAttempt,
    fence: bigint,
    sentMonoMs: number,
    renew: boolean,
    line: TurnHome | undefined,
  ) {
    this.attempt = attempt;
    this.fence = fence;
    this.startMonoMs = Math.floor(sentMonoMs);
    this.renew = renew;
    this.line = line;
  }

  /**
   * Counts the lease from before the command was sent, less a margin for clock rate: belief ends
   * before the lease does. The wall clock is kept too, because the monotonic one stops in suspend.
   */
  extend(sentMonoMs: number, sentWallMs: number): void {
    const believedMs = beliefMs(this.attempt.leaseMs);
    this.deadlineMonoMs = Math.floor(sentMonoMs + believedMs);
    this.deadlineWallMs = sentWallMs + believedMs;
  }

  /** The renewal takes turns out of its heap by itself. */
  onDue(): void {}
}

/** How much of a lease this process believes in. */
export function beliefMs(leaseMs: number): number {
  return leaseMs - Math.max(10, leaseMs * 0.02);
}

/** One local holder. Renewal and release change it; handles read it. */
export class Hold {
  readonly turn: Turn;
  readonly fence: bigint;
  readonly startMonoMs: number;
  readonly endMonoMs: number;
  state: State = 'held';
  lossReason: LossReason | undefined;
  /** How many handles share it (reentrancy by `join`). */
  handles = 1;
  private readonly keeper: Keeper;
  private controller: AbortController | undefined;
  private lostPromise: PromiseWithResolve | undefined;

  constructor(keeper: Keeper, turn: Turn, startMonoMs: number, timing: LockTiming) {
    this.keeper = keeper;
    this.turn = turn;
    this.fence = turn.handed === 0 ? turn.fence : turn.fence + BigInt(turn.handed);
    this.startMonoMs = startMonoMs;
    this.endMonoMs = startMonoMs + timing.maxHoldMs;
    turn.hold = this;
  }

  /** Synchronous and clock-based: true only while the lease cannot have ended. */
  isHeld(nowMs: number = this.keeper.runtime.monoMs()): boolean {
    if (this.state !== 'held') return false;
    const { turn } = this;
    if (
      nowMs < turn.deadlineMonoMs &&
      nowMs < this.endMonoMs &&
      this.keeper.runtime.wallMs() < turn.deadlineWallMs
    ) {
      return true;
    }
    this.lose(nowMs >= this.endMonoMs ? 'max-hold' : 'lease-ended');
    return false;
  }

  /** What is left by our own clocks; 0 when it is not held. */
  remainingMs(): number {
    if (!this.isHeld()) return 0;
    const endMonoMs = Math.min(this.turn.deadlineMonoMs, this.endMonoMs);
    return Math.max(0, endMonoMs - this.keeper.runtime.monoMs());
  }

  /** Marks it lost, tells signal, promise and keeper. Only the first call counts. */
  lose(reason: LossReason): void {
    if (this.state !== 'held') return;
    this.state = 'lost';
    this.lossReason = reason;
    this.keeper.onLost(this);
    if (this.controller === undefined && this.lostPromise === undefined) return;
    const error = this.lostError();
    this.controller?.abort(error);
    this.lostPromise?.resolve(error);
  }

  /** Created on first use: most critical sections never look at it. */
  signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.state === 'lost') this.controller.abort(this.lostError());
    }
    return this.controller.signal;
  }

  /** Created on first use; resolves when it is lost, never rejects. */
  lost(): Promise<TurngateError> {
    if (this.lostPromise === undefined) {
      let resolve!: (error: TurngateError) => void;
      const promise = new Promise<TurngateError>((resolvePromise) => {
        resolve = resolvePromise;
      });
      this.lostPromise = { promise, resolve };
      if (this.state === 'lost') resolve(this.lostError());
    }
    return this.lostPromise.promise;
  }

  lostError(): TurngateError {
    const { name } = this.turn.attempt;
    return new TurngateError('LOCK_LOST', `lost lock "${name}" (${this.lossReason}); stop writing`);
  }
}

/** Who looks after holds. */
export interface Keeper {
  readonly runtime: Runtime;
  onLost(hold: Hold): void;
}

interface PromiseWithResolve {
  readonly promise: Promise<TurngateError>;
  readonly resolve: (error: TurngateError) => void;
}
