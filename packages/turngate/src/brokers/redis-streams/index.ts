/** Redis Streams through ioredis or node-redis: a publisher for the relay, a consumer for the inbox. */

export type {
  IoredisCommands,
  NodeRedisCommands,
  RedisCommands,
  StreamEntry,
} from './client.ts';
export { consumeRedisStream, type RedisStreamConsumerOptions } from './consumer.ts';
export { type RedisStreamPublisherOptions, redisStreamPublisher } from './publisher.ts';
