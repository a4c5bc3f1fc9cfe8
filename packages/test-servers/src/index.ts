/** Real servers for tests: each lives and dies with its Node process and leaves nothing behind. */
export { startEtcd } from './etcd.ts';
export { type MariadbOptions, startMariadb } from './mariadb.ts';
export { startNats } from './nats.ts';
export { lookForProgram } from './program.ts';
export {
  type FaultProxy,
  type ProxyConnection,
  type ProxyFilter,
  type ProxyOptions,
  type ProxyVerdict,
  startProxy,
} from './proxy.ts';
export { startRabbitmq } from './rabbitmq.ts';
export { type RedisOptions, startRedis } from './redis.ts';
export { type RedisClusterOptions, startRedisCluster } from './redis-cluster.ts';
export { type RedisSentinel, startRedisSentinel } from './redis-sentinel.ts';
export type { TestServerGroup } from './server-group.ts';
export { type TemporaryDir, temporaryDir } from './temporary-dir.ts';
export type { TestServer } from './test-server.ts';
export { TestServerError, type TestServerErrorCode } from './test-server-error.ts';
export { servesSessions, startZookeeper } from './zookeeper.ts';
