/** What a caller holds in its hands. */
import { TurngateError } from '../core/errors.ts';
import { giveAway } from './give-away.ts';
import type { Hold, ReleaseResult } from './hold.ts';
import type { LockParts } from './parts.ts';
import { leaveHold } from './turn-end.ts';

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
  private readonly parts: LockParts;
  private left: Promise<ReleaseResult> | undefined;

  /** @internal */
  constructor(parts: LockParts, hold: Hold) {
    this.parts = parts;
    this.hold = hold;
  }

  /** The lock's name. */
  get name(): string {
    return this.hold.turn.attempt.name;
  }

  /** Does the store number its grants? Only a Redlock quorum does not. */
  get fenced(): boolean {
    return this.parts.fenced;
  }

  /**
   * Grows with every grant of this name. Comparable only within one name and one store.
   *
   * @throws OPTION_INVALID on a store without fences (a quorum): there is no number to trust
   */
  get fence(): bigint {
    if (this.parts.fenced) return this.hold.fence;
    throw new TurngateError(
      'OPTION_INVALID',
      `lock store "${this.parts.store.name}" has no fences`,
    );
  }

  /**
   * Aborts with LOCK_LOST when the lock is lost, at the local deadline at the latest. It cannot fire
   * while the event loop is blocked: call {@link assertHeld} after long synchronous work.
   */
  get signal(): AbortSignal {
    return this.hold.signal();
  }

  /**
   * Resolves with the LOCK_LOST error when the lock is lost. Never rejects; stays pending when the
   * lock is released in time.
   */
  get lost(): Promise<TurngateError> {
    return this.hold.lost();
  }

  /** True only while the lease cannot have ended, by this process's own clocks. Synchronous. */
  isHeld(): boolean {
    return this.left === undefined && this.hold.isHeld();
  }

  /** @throws LOCK_LOST when the lease may have ended. Synchronous; call it before each write. */
  assertHeld(): void {
    if (this.isHeld()) return;
    if (this.hold.state === 'lost') throw this.hold.lostError();
    const how = this.hold.state === 'given-away' ? 'given away' : 'released';
    throw new TurngateError('LOCK_LOST', `lock "${this.name}" was ${how} before`);
  }

  /** Milliseconds that are certainly left without another renewal; 0 when it is not held. */
  remainingMs(): number {
    return this.left === undefined ? this.hold.remainingMs() : 0;
  }

  /**
   * Lets go: one round trip, or none where it goes to the next one of this process. Safe to repeat;
   * never throws for a lock that is already gone, also when the store cannot be reached: the store is
   * then told in the background, and the answer is `expired`.
   */
  release(): Promise<ReleaseResult> {
    this.left ??= leaveHold(this.parts, this.hold);
    return this.left;
  }

  /**
   * Gives the lock away as a text that another process (or this one) turns into a handle with
   * `gate.adopt(text)`. From here on this handle holds nothing and renews nothing: adopt it within
   * the lease. Whoever has the text can take, renew and release the lock: treat it as a secret.
   *
   * @throws LOCK_LOST when it is not held any more
   * @throws OPTION_INVALID while several handles share the hold (`onReentry: 'join'`)
   */
  serialize(): string {
    this.assertHeld();
    const text = giveAway(this.parts, this.hold);
    this.left = Promise.resolve('released');
    return text;
  }

  /** Releases at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

/**
 * A handle of a store that does not number its grants (a Redlock quorum): there is no `fence` to
 * read. Use such locks to save work, never to keep two writers apart.
 */
export type UnfencedLockHandle = Omit<LockHandle, 'fence'>;
