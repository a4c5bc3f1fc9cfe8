/** Opening the etcd lock store. */
import type { LockStore } from '../../contract/lock-store.ts';
import { integerOption, knownOptions, optionError } from '../../core/option.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import type { EtcdClientLike } from './client.ts';
import { EtcdLocks } from './etcd-locks.ts';

/** Options of {@link etcdLocks}. */
export interface EtcdOptions {
  /**
   * What all keys begin with. A namespace of the client does not count: these are whole keys.
   *
   * @default 'turngate/locks/'
   */
  readonly prefix?: string;
  /**
   * How long the server may take to answer one call, connecting included. After it the call ends in
   * STORE_UNAVAILABLE.
   *
   * @unit milliseconds, integer, 100 to 600_000
   * @default 10_000
   */
  readonly answerLimitMs?: number;
  /** Clocks and timers; tests replace them. */
  readonly runtime?: Runtime;
}

/**
 * Locks in etcd: fair, failover-safe, with the creation revision of the key as fence, which etcd's
 * own transactions can compare.
 *
 * etcd counts leases in whole seconds, no fewer than its floor (2 s with default settings), and
 * fills all of them up when its leader changes. So after a crash the lock is free no earlier than
 * `leaseMs` and maybe seconds later; as long as the process lives it ends the lease to the
 * millisecond itself. A waiter that dies keeps its place for as long as a holder that dies.
 *
 * @param client `new Etcd3(…)`; you close it, not we
 * @throws OPTION_INVALID before any I/O
 */
export function etcdLocks(client: EtcdClientLike, options: EtcdOptions = {}): LockStore {
  knownOptions('etcd options', options, ['prefix', 'answerLimitMs', 'runtime']);
  const { prefix = 'turngate/locks/', runtime = systemRuntime } = options;
  if (typeof prefix !== 'string') throw optionError('prefix', 'a string', prefix);
  const has = (part: 'kv' | 'leaseClient' | 'watchClient'): boolean =>
    typeof client === 'object' && client !== null && typeof client[part] === 'object';
  if (!has('kv') || !has('leaseClient') || !has('watchClient')) {
    throw optionError('client', 'an Etcd3 client of the etcd3 package', client);
  }
  const range = { min: 100, max: 600_000, fallback: 10_000 };
  const limitMs = integerOption('answerLimitMs', options.answerLimitMs, range);
  return new EtcdLocks(runtime, client, { prefix, limitMs });
}
