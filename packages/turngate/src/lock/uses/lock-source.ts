/** What is built on locks sees of them; a gate is one. */
import type { LockState } from '../../contract/lock-store.ts';
import type { LockOptions } from '../options.ts';

/** The part of a held lock that is used. */
export interface HeldLock {
  readonly name: string;
  /** Does the store number its grants? Where it does not, `fence` is absent or throws. */
  readonly fenced: boolean;
  readonly fence?: bigint;
  readonly signal: AbortSignal;
  isHeld(): boolean;
  assertHeld(): void;
  release(): Promise<unknown>;
}

/** Where locks come from: a gate with a lock store. */
export interface LockSource<Lock extends HeldLock = HeldLock> {
  acquire(name: string, options?: LockOptions): Promise<Lock>;
}

/** A source that can also say who holds a lock. */
export interface WatchedLockSource extends LockSource {
  inspectLock(name: string): Promise<LockState | undefined>;
}
