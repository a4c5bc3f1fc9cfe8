/** Which client was passed in, told by its shape: no driver is imported. */
import { optionError } from '../../core/option.ts';
import type { RedisDriver } from './driver.ts';
import { type IoredisLike, ioredisDriver } from './drivers/ioredis.ts';
import {
  type NodeRedisClusterLike,
  type NodeRedisLike,
  type NodeRedisSentinelLike,
  nodeRedisClusterDriver,
  nodeRedisDriver,
  nodeRedisSentinelDriver,
} from './drivers/node-redis.ts';
import { checkPrefix } from './keys.ts';

/** A client Turngate can use: ioredis' `Redis` or `Cluster`, or node-redis' client, cluster, sentinel. */
export type RedisClient =
  | IoredisLike
  | NodeRedisLike
  | NodeRedisClusterLike
  | NodeRedisSentinelLike;

/** @throws OPTION_INVALID when it is none of them, or its key prefix has braces */
export function driverOf(client: unknown): RedisDriver {
  const driver = told(client);
  checkPrefix('keyPrefix of the client', driver.keyPrefix);
  return driver;
}

function told(client: unknown): RedisDriver {
  const has = (name: string): boolean =>
    typeof (client as Record<string, unknown> | null | undefined)?.[name] === 'function';
  if (has('evalsha') && has('subscribe') && has('duplicate')) {
    return ioredisDriver(client as IoredisLike);
  }
  if (has('sendCommand') && has('getSlotRandomNode')) {
    return nodeRedisClusterDriver(client as NodeRedisClusterLike);
  }
  if (has('sendCommand') && has('getSentinelNode')) {
    return nodeRedisSentinelDriver(client as NodeRedisSentinelLike);
  }
  if (has('sendCommand') && has('duplicate') && 'isReady' in (client as object)) {
    return nodeRedisDriver(client as NodeRedisLike);
  }
  throw optionError('client', 'an ioredis or node-redis client, cluster or sentinel', client);
}
