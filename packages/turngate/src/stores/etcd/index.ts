/** Locks in etcd, over a client of etcd3 that the caller hands in. */

export type {
  EtcdCallOptions,
  EtcdClientLike,
  EtcdKeepAliveLike,
  EtcdKeyValueLike,
  EtcdRangeReplyLike,
  EtcdStreamLike,
  EtcdTxnReplyLike,
  EtcdWatchReplyLike,
} from './client.ts';
export { type EtcdOptions, etcdLocks } from './open.ts';
