/** WAIT after each grant: a lock that a promoted replica would not know is not given out. */
import type { LockGrant } from '../../contract/lock-store.ts';
import { TurngateError } from '../../core/errors.ts';
import type { RedisDriver } from './driver.ts';
import { isRefused, redisError } from './redis-error.ts';

/** How many replicas must have a grant before it counts. */
export interface Replicas {
  /** @unit replicas, integer, 1 to 100 */
  readonly min: number;
  /** @unit milliseconds, integer, 1 to 60_000 */
  readonly timeoutMs: number;
  /** What a server without WAIT means. */
  readonly unsupported: 'error' | 'best-effort';
}

/** Waits for the replicas of one store's server. */
export class ReplicaWait {
  private readonly driver: RedisDriver;
  private readonly replicas: Replicas;

  constructor(driver: RedisDriver, replicas: Replicas) {
    this.driver = driver;
    this.replicas = replicas;
  }

  /**
   * Called in the tick in which the script was sent, so that WAIT follows it on the same connection:
   * it counts the replicas that have this connection's writes.
   */
  async after(granted: Promise<LockGrant>, giveBack: () => Promise<unknown>): Promise<LockGrant> {
    const { min, timeoutMs } = this.replicas;
    const acknowledged = this.driver.command('WAIT', [String(min), String(timeoutMs)]);
    const [grant, waited] = await Promise.allSettled([granted, acknowledged]);
    if (grant.status === 'rejected') throw grant.reason;
    if (grant.value.kind !== 'granted') return grant.value;
    if (waited.status === 'fulfilled' && Number(waited.value) >= min) return grant.value;
    if (waited.status === 'rejected' && isRefused(waited.reason)) {
      if (this.replicas.unsupported === 'best-effort') return grant.value;
    }
    await giveBack();
    if (waited.status === 'rejected') throw notApplied(waited.reason);
    const message = `${Number(waited.value)} of ${min} replicas confirmed the lock in ${timeoutMs} ms`;
    throw new TurngateError('STORE_UNAVAILABLE', message, { retryAfterMs: 250 });
  }
}

function notApplied(error: unknown): TurngateError {
  const { message } = redisError(error);
  return new TurngateError('STORE_UNAVAILABLE', message, { cause: error });
}
