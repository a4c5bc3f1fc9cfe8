/** Opening the lock store over PostgreSQL's advisory locks. */
import type { LockLossListener, LockStore } from '../../contract/lock-store.ts';
import { integerOption, knownOptions, optionError } from '../../core/option.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import { connectionsOf, type PostgresSessionClient } from './session-clients.ts';
import { PostgresSessionLocks } from './session-locks.ts';

/** Options of {@link postgresSessionLocks}. */
export interface PostgresSessionOptions {
  /**
   * Keeps sets of locks in one database apart: part of every lock number.
   *
   * @default 'turngate'
   */
  readonly namespace?: string;
  /**
   * How long the server may take to answer one statement, waiting for the connection included. After
   * it the connection is thrown away, and with it all locks of this store.
   *
   * @unit milliseconds, integer, 100 to 600_000
   * @default 10_000
   */
  readonly answerLimitMs?: number;
  /** Clocks and timers; tests replace them. */
  readonly runtime?: Runtime;
}

/** A lock store that lives in a connection. */
export interface PostgresSessionLockStore extends LockStore {
  /**
   * Calls back for each grant that ended because the connection did. Renewals say the same, later.
   * Returns the end of it.
   */
  onLoss(listener: LockLossListener): () => void;
  /** Gives the connection back to the pool. Locks still held are lost. */
  close(): Promise<void>;
}

/**
 * Locks as advisory locks of one PostgreSQL session: nothing is written but a sequence, and a process
 * that dies frees everything at once. One connection of the pool is kept while locks are held.
 *
 * Choose table mode (`postgresLocks`) unless you need that: it works behind poolers, keeps its locks
 * over a lost connection, and shows who holds them. Not promised here: that the server notices a host
 * that vanished before its TCP keep-alive does (set `tcp_keepalives_idle` and
 * `client_connection_check_interval`); that locks survive a failover.
 *
 * @param client a `pg.Pool` or a postgres.js `sql` with at least two connections, straight to the
 *   server; a pooler in transaction mode is detected and refused
 * @throws OPTION_INVALID
 */
export function postgresSessionLocks(
  client: PostgresSessionClient,
  options: PostgresSessionOptions = {},
): PostgresSessionLockStore {
  knownOptions('PostgreSQL options', options, ['namespace', 'answerLimitMs', 'runtime']);
  const { namespace = 'turngate', runtime = systemRuntime } = options;
  if (typeof namespace !== 'string') throw optionError('namespace', 'a string', namespace);
  const range = { min: 100, max: 600_000, fallback: 10_000 };
  const limitMs = integerOption('answerLimitMs', options.answerLimitMs, range);
  return new PostgresSessionLocks(runtime, connectionsOf(client), { namespace, limitMs });
}
