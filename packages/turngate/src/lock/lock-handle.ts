/** What a caller holds in its hands. */
import { TurngateError } from '../core/errors.ts';
import type { Hold } from './hold.ts';

/** The answer to a release: somebody who released too late is told so, never refused. */
export type ReleaseResult = 'released' | 'expired' | 'taken';

/**
 * A lock that is held. Release it, or take it with `await using`, which does so at the end of the
 * block.
 *
 * Not promised: that nobody else works while you do. A process that is frozen past its lease wakes
 * up believing it still holds the lock until it asks; only `fence`, entered and checked next to the
 * data, makes its late write fail.
 */
export class LockHandle implements AsyncDisposable {
  /** @internal */
  readonly hold: Hold;
  private readonly leave: () => Promise<ReleaseResult>;
  private left: Promise<ReleaseResult> | undefined;

  /** @internal */
  constructor(hold: Hold, leave: () => Promise<ReleaseResult>) {
    this.hold = hold;
    this.leave = leave;
  }

  /** The lock's name. */
  get name(): string {
    return this.hold.attempt.name;
  }

  /** Grows with every grant of this name. Comparable only within one name and one store. */
  get fence(): bigint {
    return this.hold.fence;
  }

  /**
   * Aborts with LOCK_LOST when the lock is lost, at the local deadline at the latest. It cannot fire
   * while the event loop is blocked: call {@link assertHeld} after long synchronous work.
   */
  get signal(): AbortSignal {
    return this.hold.signal();
  }

  /** True only while the lease cannot have ended, by this process's own clocks. Synchronous. */
  isHeld(): boolean {
    return this.left === undefined && this.hold.isHeld();
  }

  /** @throws LOCK_LOST when the lease may have ended. Synchronous; call it before each write. */
  assertHeld(): void {
    if (this.isHeld()) return;
    if (this.hold.state === 'lost') throw this.hold.lostError();
    throw new TurngateError('LOCK_LOST', `lock "${this.name}" was released before`);
  }

  /** Lets go. Safe to repeat; never throws for a lock that is already gone. */
  release(): Promise<ReleaseResult> {
    this.left ??= this.leave();
    return this.left;
  }

  /** Releases at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
