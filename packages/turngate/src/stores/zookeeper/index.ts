/** Locks in ZooKeeper, over a client of node-zookeeper-client that the caller hands in. */

export type { ZookeeperClientLike, ZookeeperErrorLike, ZookeeperStatLike } from './client.ts';
export { type ZookeeperLockStore, type ZookeeperOptions, zookeeperLocks } from './open.ts';
export type { ZookeeperSource } from './sessions.ts';
