/**
 * What a lock store must be able to do. No waiting, retry or timer inside a store: lock/ owns those.
 *
 * Laws (proved for every store by the conformance suite):
 * - Each verb is one atomic step. Repeating a verb with the same attempt changes nothing more and
 *   gives the same answer, so a lost reply is not a ghost lock.
 * - At most one live holder per name in the store's own time; only that holder renews or releases.
 * - Fences of one name only grow, over expiry, restart and, where `fencing` is "failover-safe", loss
 *   of the newest data.
 * - A rejected promise means *unknown*, never "held".
 */

/** What a lock store promises; shown in the generated capability table. */
export interface LockCapabilities {
  /** Whose clock ends a lease. */
  readonly clock: 'server' | 'process';
  /** Does every grant carry a number that only grows? */
  readonly fencing: 'failover-safe' | 'durable' | 'process' | 'none';
  /** How a waiter learns that it may try again. */
  readonly wakeup: 'push' | 'poll';
  /** Can two holders overlap after the store fails over? */
  readonly failover: 'safe' | 'depends' | 'not-applicable';
  /** In which order waiters of different processes are served. */
  readonly fairness: 'fifo' | 'none';
}

/** One attempt at one name. */
export interface LockAttempt {
  readonly name: string;
  /** Unique per attempt; the only proof of ownership. */
  readonly owner: string;
  /** Life of the grant without renewal. */
  readonly leaseMs: number;
}

/** The answer to an attempt. */
export type LockGrant =
  | { readonly kind: 'granted'; readonly fence: bigint }
  /** Held by another. `remainingMs` is what is left of its lease: trying before may be in vain. */
  | { readonly kind: 'held'; readonly remainingMs: number };

/** The answer to a renewal or release. */
export type LockAnswer =
  | 'ours'
  /** The lease had ended; nobody else has taken the lock since. */
  | 'expired'
  /** Somebody else holds it now. */
  | 'taken';

/** What an operator sees. */
export interface LockState {
  readonly name: string;
  readonly owner: string;
  readonly fence: bigint;
  readonly remainingMs: number;
}

/** The port. */
export interface LockStore {
  readonly name: string;
  readonly capabilities: LockCapabilities;
  tryAcquire(attempt: LockAttempt): Promise<LockGrant>;
  /** Pushes out the leases that are still ours; one answer per attempt, in order. */
  renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]>;
  release(attempt: Pick<LockAttempt, 'name' | 'owner'>): Promise<LockAnswer>;
  /** The live holder; undefined when free. Throws when it cannot know. */
  inspect(name: string): Promise<LockState | undefined>;
  /**
   * Calls `onFree` when a lock of this store may have become free, where the store can push.
   * A store that cannot has no such method and `wakeup: "poll"`.
   */
  watch?(name: string, onFree: () => void): () => void;
}
