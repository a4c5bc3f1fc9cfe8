/** Opening the MySQL stores over a pool the caller made and will end. */
import type { LockStore } from '../../contract/lock-store.ts';
import type { RecordStore } from '../../contract/record-store.ts';
import type { SqlDatabase, SqlSession } from '../../contract/sql-session.ts';
import type { StagedStore } from '../../contract/staged-store.ts';
import { integerOption, knownOptions } from '../../core/option.ts';
import { Deadlines } from '../../runtime/deadlines.ts';
import { systemRuntime } from '../../runtime/runtime.ts';
import { sqlRecordAdmin } from '../sql/record-admin.ts';
import { recordLayouts } from '../sql/record-layouts.ts';
import { SqlStaged } from '../sql/sql-staged.ts';
import { mysqlSqlDatabase } from './database.ts';
import type { MysqlDriver } from './driver.ts';
import { applyMigrations, type MigrationReport } from './migrate.ts';
import { isConflict, ourStoreError } from './mysql-error.ts';
import { MysqlLocks } from './mysql-locks.ts';
import { MysqlRecords } from './mysql-records.ts';
import { type MysqlConnectionLike, type MysqlPool, mysql2Driver, mysql2Session } from './mysql2.ts';
import { MysqlSessionLocks } from './session-locks.ts';

/** Options of the MySQL stores. */
export interface MysqlOptions {
  /**
   * How long the server may take to answer one of our calls, waiting for a free connection included.
   * After it the call ends in STORE_UNAVAILABLE, or is settled by reading if it was the commit.
   * Handlers' own statements are not limited by it.
   *
   * @unit milliseconds, integer, 100 to 600_000
   * @default 10_000
   */
  readonly answerLimitMs?: number;
}

/**
 * Idempotency records in MySQL 8 or MariaDB 10.6 and newer, in one transaction with your writes.
 *
 * Handlers get a promise connection, whichever style of pool is given. Pools with
 * `multipleStatements: true` save round trips: three per first call instead of nine.
 *
 * @param pool a mysql2 pool, callback or promise style, whose connections autocommit; you end it, not we
 * @throws OPTION_INVALID before any I/O
 */
export function mysql(
  pool: MysqlPool,
  options: MysqlOptions = {},
): RecordStore<MysqlConnectionLike> {
  const database = mysqlDatabase(pool, options) as SqlDatabase;
  const admin = sqlRecordAdmin(database, recordLayouts.mysql, ourStoreError);
  return new MysqlRecords(open(pool, options), admin);
}

/**
 * Locks in a table: one row per name with lease and fence. Holds no connection, works behind proxies.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function mysqlLocks(pool: MysqlPool, options: MysqlOptions = {}): LockStore {
  return new MysqlLocks(open(pool, options));
}

/**
 * Locks by GET_LOCK on a connection of its own, taken from the pool at the first use. A holder that
 * ends is noticed at once, without waiting for a lease; in return a holder that hangs keeps its locks
 * until its connection ends, whatever the lease says. Not across several writable servers (Galera,
 * Group Replication), and not behind a proxy that shares connections, which is refused.
 *
 * `close()` of the returned store frees all its locks and gives the connection back.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function mysqlSessionLocks(
  pool: MysqlPool,
  options: MysqlOptions = {},
): LockStore & { close(): Promise<void> } {
  return new MysqlSessionLocks(open(pool, options), systemRuntime);
}

/**
 * Creates or updates Turngate's tables; safe to call from every process at start-up.
 *
 * @throws STORE_UNAVAILABLE
 */
export async function migrate(pool: MysqlPool): Promise<MigrationReport> {
  return await applyMigrations(open(pool, { answerLimitMs: 600_000 }));
}

/**
 * The database as relays, jobs, sweepers and coordinators use it. Its transactions are READ COMMITTED,
 * so that statements which look for work leave no gap locks behind.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function mysqlDatabase(
  pool: MysqlPool,
  options: MysqlOptions = {},
): SqlDatabase<MysqlConnectionLike> {
  return mysqlSqlDatabase(open(pool, options));
}

/**
 * Staged operations in MySQL or MariaDB; database steps get the same transactions as operations do.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function mysqlStaged(
  pool: MysqlPool,
  options: MysqlOptions = {},
): StagedStore<MysqlConnectionLike> {
  const rules = { name: 'mysql', shared: true, toError: ourStoreError, isConflict };
  return new SqlStaged(mysqlDatabase(pool, options), rules);
}

/** The open transaction behind a handler's `tx`, as flows speak to it. */
export function mysqlSession(tx: unknown): SqlSession {
  return mysql2Session(tx);
}

function open(pool: unknown, options: MysqlOptions): MysqlDriver<MysqlConnectionLike> {
  knownOptions('MySQL options', options, ['answerLimitMs']);
  const range = { min: 100, max: 600_000, fallback: 10_000 };
  const limitMs = integerOption('answerLimitMs', options.answerLimitMs, range);
  return mysql2Driver(pool, new Deadlines(systemRuntime, limitMs));
}
