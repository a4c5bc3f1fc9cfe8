/** One hold of a lock as this process knows it: deadlines by its own clocks, loss told at once. */
import type { LockAttempt } from '../contract/lock-store.ts';
import { TurngateError } from '../core/errors.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Place } from './local-queue.ts';

/** Why a hold ended without being released. */
export type LossReason = 'lease-ended' | 'taken' | 'max-hold';

type State = 'held' | 'released' | 'lost';

/** The state of one grant. Renewal and release change it; handles read it. */
export class Hold {
  readonly attempt: LockAttempt;
  readonly fence: bigint;
  readonly acquiredMonoMs: number;
  readonly endMonoMs: number;
  state: State = 'held';
  /** How many handles share it (reentrancy by `join`). */
  shares = 1;
  lossReason: LossReason | undefined;
  /** The place in the local queue, given up by whoever leaves last. */
  readonly place: Place;
  deadlineMonoMs = 0;
  private deadlineWallMs = 0;
  private readonly runtime: Runtime;
  private controller: AbortController | undefined;
  private readonly onLost: (hold: Hold) => void;

  constructor(
    runtime: Runtime,
    grant: {
      attempt: LockAttempt;
      fence: bigint;
      sentMonoMs: number;
      maxHoldMs: number;
      place: Place;
    },
    onLost: (hold: Hold) => void,
  ) {
    this.runtime = runtime;
    this.attempt = grant.attempt;
    this.fence = grant.fence;
    this.place = grant.place;
    this.acquiredMonoMs = grant.sentMonoMs;
    this.endMonoMs = grant.sentMonoMs + grant.maxHoldMs;
    this.onLost = onLost;
    this.extend(grant.sentMonoMs);
  }

  /**
   * Counts the lease from before the command was sent, less a margin for clock rate: belief ends
   * before the lease does. The wall clock is kept too, because the monotonic one stops in suspend.
   */
  extend(sentMonoMs: number): void {
    const { leaseMs } = this.attempt;
    const spentMs = this.runtime.monoMs() - sentMonoMs;
    const beliefMs = leaseMs - Math.max(10, leaseMs * 0.02);
    this.deadlineMonoMs = Math.min(sentMonoMs + beliefMs, this.endMonoMs);
    this.deadlineWallMs = this.runtime.wallMs() + beliefMs - spentMs;
  }

  /** Synchronous and clock-based: true only while the lease cannot have ended. */
  isHeld(): boolean {
    if (this.state !== 'held') return false;
    const nowMs = this.runtime.monoMs();
    if (nowMs < this.deadlineMonoMs && this.runtime.wallMs() < this.deadlineWallMs) return true;
    this.lose(nowMs >= this.endMonoMs ? 'max-hold' : 'lease-ended');
    return false;
  }

  /** Marks it lost, aborts its signal, tells the owner of the hold. Only the first call counts. */
  lose(reason: LossReason): void {
    if (this.state !== 'held') return;
    this.state = 'lost';
    this.lossReason = reason;
    this.controller?.abort(this.lostError());
    this.onLost(this);
  }

  /** Created on first use: most critical sections never look at it. */
  signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.state === 'lost') this.controller.abort(this.lostError());
    }
    return this.controller.signal;
  }

  lostError(): TurngateError {
    const { name } = this.attempt;
    return new TurngateError('LOCK_LOST', `lost lock "${name}" (${this.lossReason}); stop writing`);
  }
}
