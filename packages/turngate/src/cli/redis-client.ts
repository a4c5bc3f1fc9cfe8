/** Opens the locks of a Redis url with whichever client the user's project has. */
import type { LockStore } from '../contract/lock-store.ts';
import { type IoredisLike, type NodeRedisLike, redisLocks } from '../stores/redis/index.ts';
import { withDriver } from './client.ts';

/** Locks of a Redis server, and how to end the client. */
export interface OpenRedis {
  readonly locks: LockStore;
  end(): Promise<void>;
}

const connectLimitMs = 10_000;

/** @throws Error when the project has no client */
export async function openRedis(url: string): Promise<OpenRedis> {
  return await withDriver({ ioredis: openIoredis, redis: openNodeRedis }, 'Redis', url);
}

type Ioredis = IoredisLike & {
  connect(): Promise<void>;
  disconnect(): void;
  on(event: 'error', listener: () => void): unknown;
};

async function openIoredis(
  Redis: new (url: string, options: object) => Ioredis,
  url: string,
): Promise<OpenRedis> {
  const options = { lazyConnect: true, connectTimeout: connectLimitMs, retryStrategy: null };
  const client = new Redis(url, { ...options, maxRetriesPerRequest: 0 });
  client.on('error', () => {}); // The connect below rejects with it.
  await client.connect();
  return {
    locks: redisLocks(client as never, { wakeup: 'poll' }),
    end: async () => client.disconnect(),
  };
}

type NodeRedis = NodeRedisLike & {
  connect(): Promise<unknown>;
  destroy(): void;
  on(event: 'error', listener: () => void): unknown;
};

async function openNodeRedis(
  redis: { createClient(options: object): NodeRedis },
  url: string,
): Promise<OpenRedis> {
  const socket = { connectTimeout: connectLimitMs, reconnectStrategy: false };
  const client = redis.createClient({ url, socket });
  client.on('error', () => {});
  await client.connect();
  return {
    locks: redisLocks(client as never, { wakeup: 'poll' }),
    end: async () => client.destroy(),
  };
}
