/** What the processes of a shop share besides the database: a Redis with locks, limits, cached pages. */
import { Redis } from 'ioredis';
import type { LockStore } from 'turngate/contract';
import { memoryLocks } from 'turngate/memory';
import { redisLocks } from 'turngate/redis';

/** An open lock store. */
export interface ShopLocks {
  readonly store: LockStore;
  /** The Redis behind it; undefined: locks, limits and cached pages are of this process alone. */
  readonly redis: Redis | undefined;
  end(): Promise<void>;
}

/**
 * Opens it. Locks in memory are right for one process; with several they only save less work, since
 * the database decides what happens once.
 */
export function openLocks(url: string | undefined, onError: (error: Error) => void): ShopLocks {
  if (url === undefined) {
    return { store: memoryLocks(), redis: undefined, end: async () => undefined };
  }
  const redis = new Redis(url, { connectTimeout: 5_000, maxRetriesPerRequest: 3 });
  redis.on('error', onError); // Reconnecting goes on by itself.
  const store = redisLocks(redis);
  return {
    store,
    redis,
    async end() {
      store.close();
      redis.disconnect();
    },
  };
}
