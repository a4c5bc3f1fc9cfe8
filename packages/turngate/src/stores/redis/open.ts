/** Opening the Redis stores over a client the caller made and will end. */
import type { LockStore } from '../../contract/lock-store.ts';
import { integerOption, knownOptions, optionError, wordOption } from '../../core/option.ts';
import { systemRuntime } from '../../runtime/runtime.ts';
import { driverOf, type RedisClient } from './clients.ts';
import { checkPrefix } from './keys.ts';
import { RedisLocks } from './redis-locks.ts';
import type { Replicas } from './replicas.ts';

/** Options of {@link redisLocks}. */
export interface RedisLocksOptions {
  /**
   * Starts every key and channel of ours, after a key prefix of the client. All processes that share
   * locks must agree on both. An ACL needs `~<prefix>*` and `&<prefix>*`.
   *
   * @default 'turngate:'
   */
  readonly prefix?: string;
  /**
   * How waiters learn of their turn. `push`: one subscribing connection per store, opened when
   * somebody has to wait for the first time; the store falls back to asking again where the server
   * refuses it. `poll`: never a second connection, more commands and later grants.
   *
   * @default 'push'
   */
  readonly wakeup?: 'push' | 'poll';
  /**
   * A grant counts only after so many replicas have confirmed it (WAIT); on a shortfall the lock is
   * given back and the call ends in STORE_UNAVAILABLE. It makes two holders after a failover less
   * likely, not impossible: the fence remains the protection. Renewals do not wait. Not for clusters
   * and node-redis sentinel clients. `unsupported` says what a server without WAIT means.
   *
   * @default no waiting
   */
  readonly replicas?: {
    /** @unit replicas, integer, 1 to 100 */
    readonly min: number;
    /**
     * @unit milliseconds, integer, 1 to 60_000
     * @default 1_000
     */
    readonly timeoutMs?: number;
    /** @default 'error' */
    readonly unsupported?: 'error' | 'best-effort';
  };
}

/** A lock store with a connection of its own to end. */
export interface ClosableLockStore extends LockStore {
  /** Ends the subscribing connection if one was opened; it also ends with the client. */
  close(): void;
}

/**
 * Locks in Redis (5 or newer): server clock, fences that outlive a lost server, a fair queue with
 * hand-over by push, permits and read/write. Mutual exclusion is as good as the server's memory: a
 * failover to a replica that missed the grant can let a second holder in, whose fence is greater.
 *
 * @param client ioredis `Redis` or `Cluster`, node-redis client, cluster or sentinel; you end it
 * @throws OPTION_INVALID before any I/O
 */
export function redisLocks(
  client: RedisClient,
  options: RedisLocksOptions = {},
): ClosableLockStore {
  knownOptions('Redis lock options', options, ['prefix', 'wakeup', 'replicas']);
  const driver = driverOf(client);
  const replicas = replicasOption(options.replicas);
  if (replicas !== undefined && !driver.ordered) {
    throw optionError('replicas', 'left out: WAIT has no meaning on this client', options.replicas);
  }
  return new RedisLocks({
    driver,
    runtime: systemRuntime,
    prefix: checkPrefix('prefix', options.prefix ?? 'turngate:'),
    wakeup: wordOption('wakeup', options.wakeup, ['push', 'poll'], 'push'),
    replicas,
  });
}

function replicasOption(given: RedisLocksOptions['replicas']): Replicas | undefined {
  if (given === undefined) return undefined;
  knownOptions('replicas', given, ['min', 'timeoutMs', 'unsupported']);
  const { min, timeoutMs, unsupported } = given;
  return {
    min: integerOption('replicas.min', min, { min: 1, max: 100, fallback: 1 }),
    timeoutMs: integerOption('replicas.timeoutMs', timeoutMs, {
      min: 1,
      max: 60_000,
      fallback: 1_000,
    }),
    unsupported: wordOption('replicas.unsupported', unsupported, ['error', 'best-effort'], 'error'),
  };
}
