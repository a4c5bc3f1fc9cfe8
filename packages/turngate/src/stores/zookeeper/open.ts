/** Opening the ZooKeeper lock store. */
import type { LockLossListener, LockStore } from '../../contract/lock-store.ts';
import { integerOption, knownOptions, optionError } from '../../core/option.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import type { ZookeeperSource } from './sessions.ts';
import { ZookeeperLocks } from './zookeeper-locks.ts';

/** Options of {@link zookeeperLocks}. */
export interface ZookeeperOptions {
  /**
   * Where the locks live. Must not end in a slash. Two sets of locks with different roots have
   * nothing to do with each other.
   *
   * @default '/turngate/locks'
   */
  readonly root?: string;
  /**
   * How long the server may take to answer one command, connecting included. After it the call ends
   * in STORE_UNAVAILABLE; a node it may have made is found again or removed later.
   *
   * @unit milliseconds, integer, 100 to 600_000
   * @default 10_000
   */
  readonly answerLimitMs?: number;
  /** Access lists for the nodes we make, as node-zookeeper-client takes them. Default: open. */
  readonly acls?: readonly unknown[];
  /** Clocks and timers; tests replace them. */
  readonly runtime?: Runtime;
}

/** A lock store that lives in a session. */
export interface ZookeeperLockStore extends LockStore {
  /**
   * Calls back for each grant that ended because its session did, or because the server has not been
   * heard for two thirds of the session timeout. Renewals say the same, later. Returns the end of it.
   */
  onLoss(listener: LockLossListener): () => void;
  /** Closes the client if the store made it by the function. Locks still held are lost. */
  close(): Promise<void>;
}

/**
 * Locks in ZooKeeper: fair, failover-safe, with the node's czxid as fence.
 *
 * The session timeout decides when a dead process loses its locks, not `leaseMs`; `leaseMs` may be
 * shorter (this process then ends the lease itself) but never longer than the negotiated timeout:
 * that is refused. Not promised: that a hold can be handed to another process, because it belongs to
 * the session.
 *
 * @param client a client that you have connected, or better a function that makes one (not yet
 *   connected): only then can the store go on after its session has expired
 * @throws OPTION_INVALID before any I/O
 */
export function zookeeperLocks(
  client: ZookeeperSource,
  options: ZookeeperOptions = {},
): ZookeeperLockStore {
  knownOptions('ZooKeeper options', options, ['root', 'answerLimitMs', 'acls', 'runtime']);
  const { root = '/turngate/locks', acls, runtime = systemRuntime } = options;
  if (typeof root !== 'string' || !/^(\/[^/]+)+$/.test(root)) {
    throw optionError('root', 'an absolute path without a slash at its end', root);
  }
  const isClient = typeof (client as { getChildren?: unknown })?.getChildren === 'function';
  if (!isClient && typeof client !== 'function') {
    throw optionError('client', 'a node-zookeeper-client or a function that makes one', client);
  }
  const range = { min: 100, max: 600_000, fallback: 10_000 };
  const limitMs = integerOption('answerLimitMs', options.answerLimitMs, range);
  return new ZookeeperLocks(runtime, client, { root, limitMs, acls });
}
