/**
 * What a lock store must be able to do. No waiting, retry or timer inside a store: lock/ owns those.
 *
 * Laws (proved for every store by the conformance suite):
 * - Each verb is one atomic step. Repeating a verb with the same attempt changes nothing more and
 *   gives the same answer, so a lost reply is not a ghost lock.
 * - At most one live holder per name in the store's own time; only that holder renews or releases.
 * - Fences of one name only grow, over expiry, restart and, where `fencing` is "failover-safe", loss
 *   of the newest data.
 * - A rejected promise means *unknown*, never "held". A STORE_UNAVAILABLE error with `retryAfterMs`
 *   is temporary: the caller asks again within its wait budget. Any other ends the waiting.
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
  /** Can several hold one name, each a share of it (read/write, semaphore)? */
  readonly shares: boolean;
  /** Can one grant reserve several fences, so that a process may hand the lock over inside? */
  readonly fenceBlocks: boolean;
}

/** How much of a name an attempt takes. Absent: all of it, a mutex. */
export interface LockShare {
  /** Permits asked for: an integer from 1 to `limit`. */
  readonly take: number;
  /** Permits the name has. Whoever asks says so; the limit of the attempt at hand counts. */
  readonly limit: number;
  /** Goes before waiters without it (a writer before readers). */
  readonly urgent?: boolean;
}

/** One attempt at one name. */
export interface LockAttempt {
  readonly name: string;
  /** Unique per attempt, printable ASCII; the only proof of ownership. */
  readonly owner: string;
  /** Life of the grant without renewal. */
  readonly leaseMs: number;
  /** What is taken; absent for a mutex. One name is used with or without shares, never both. */
  readonly share?: LockShare;
  /**
   * Stand in the store's queue while the name is held (fairness "fifo"). The place lapses when the
   * attempt is not repeated for this long, and goes with `release`. Absent: exactly one try.
   */
  readonly queueMs?: number;
  /** Fences to reserve: the granted one and the next `fences - 1` belong to this grant. Default 1. */
  readonly fences?: number;
}

/** A grant. */
export interface LockGranted {
  readonly kind: 'granted';
  readonly fence: bigint;
}

/** The answer to an attempt. */
export type LockGrant =
  | LockGranted
  /** Held by another. `remainingMs` is what is left of its lease: trying before may be in vain. */
  | { readonly kind: 'held'; readonly remainingMs: number };

/** The answer to a renewal or release. */
export type LockAnswer =
  | 'ours'
  /** The lease had ended; nobody else has taken the lock since. Of a share: it had ended. */
  | 'expired'
  /** Somebody else holds it now. Never said of a share, which is held beside others. */
  | 'taken';

/** What an operator sees: of several holders the newest. */
export interface LockState {
  readonly name: string;
  readonly owner: string;
  readonly fence: bigint;
  readonly remainingMs: number;
  /** Live holders; 1 for a mutex. */
  readonly holders?: number;
  /** Attempts in the store's queue, where it has one. */
  readonly waiters?: number;
}

/** Told about a grant that has ended. */
export type LockLossListener = (attempt: Pick<LockAttempt, 'name' | 'owner'>) => void;

/** The port. */
export interface LockStore {
  readonly name: string;
  readonly capabilities: LockCapabilities;
  tryAcquire(attempt: LockAttempt): Promise<LockGrant>;
  /** Most attempts one `renew` should carry. Default 128; more where the store splits by itself. */
  readonly renewMax?: number;
  /** Pushes out the leases that are still ours; one answer per attempt, in order. */
  renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]>;
  /** Frees the lock, or gives up the place in the queue; the next in the queue is served. */
  release(attempt: LockAttempt): Promise<LockAnswer>;
  /**
   * `release(attempt)` and `tryAcquire(next)` in one step: one round trip per turn of a process
   * whose local queue goes on. Absent where the store cannot; callers then send both.
   */
  pass?(
    attempt: LockAttempt,
    next: LockAttempt,
  ): Promise<{ readonly answer: LockAnswer; readonly grant: LockGrant }>;
  /** The live holder; undefined when free. Throws when it cannot know. */
  inspect(name: string): Promise<LockState | undefined>;
  /**
   * Takes the name from whoever holds it and from everybody who waits, for an operator. The next
   * fence is greater than any before. Absent where the store cannot take a lock away.
   */
  forceRelease?(name: string): Promise<'released' | 'free'>;
  /**
   * Calls `onPush` when an attempt that waits may try again, or with the grant that the store has
   * already made to it (a lease that counts from no earlier than the attempt's last try). Pushes can
   * be lost: callers also try again by themselves. Returns the end of watching. Called before the
   * attempt's first try, so that no push can fall between the two: it must be cheap. A store that
   * cannot push has no such method and `wakeup: "poll"`.
   */
  watch?(attempt: LockAttempt, onPush: (granted?: LockGranted) => void): () => void;
  /**
   * Calls back, at once, for every grant of this store that ended because the session or connection
   * it lived in did; a renewal would say the same, later. Returns the end of listening. Absent where
   * grants live by their leases alone.
   */
  onLoss?(listener: LockLossListener): () => void;
}
