/** Redis stores: locks and records over ioredis or node-redis; a quorum of independent servers. */

export type { RedisClient } from './clients.ts';
export type { IoredisLike } from './drivers/ioredis.ts';
export type {
  NodeRedisClusterLike,
  NodeRedisLike,
  NodeRedisSentinelLike,
} from './drivers/node-redis.ts';
export { type ClosableLockStore, type RedisLocksOptions, redisLocks } from './open.ts';
export { type RedisRecordsOptions, redisRecords } from './open-records.ts';
export { type RedlockOptions, redlock, type UnfencedLockStore } from './redlock.ts';
