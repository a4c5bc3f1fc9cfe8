/** Opening the SQLite stores over a handle the caller made and will close. */
import type { RecordStore } from '../../contract/record-store.ts';
import type { SqlDatabase, SqlSession } from '../../contract/sql-session.ts';
import type { StagedStore } from '../../contract/staged-store.ts';
import { integerOption, knownOptions } from '../../core/option.ts';
import { systemRuntime } from '../../runtime/runtime.ts';
import { sqlRecordAdmin } from '../sql/record-admin.ts';
import { recordLayouts } from '../sql/record-layouts.ts';
import { SqlStaged } from '../sql/sql-staged.ts';
import { connectionOf, type SqliteLike } from './client.ts';
import { sqliteSessionOf, sqliteSqlDatabase } from './database.ts';
import { applyMigrations, type MigrationReport } from './migrate.ts';
import { isConflict, ourStoreError } from './sqlite-error.ts';
import { SqliteRecords } from './sqlite-records.ts';
import type { Patience } from './transaction.ts';

/** Options of the SQLite stores. */
export interface SqliteOptions {
  /**
   * How long a transaction of ours waits for the writers of other processes. After it the call ends in
   * STORE_UNAVAILABLE. The wait does not block the process. Waiting for transactions on the same
   * handle is not limited by it.
   *
   * @unit milliseconds, integer, 100 to 600_000
   * @default 10_000
   */
  readonly answerLimitMs?: number;
}

/**
 * Idempotency records in a SQLite file (3.42 or newer), in one transaction with your writes, shared by
 * all processes of one host. Transactions run one at a time; handlers get the handle itself.
 *
 * Give Turngate a handle of its own: whatever else is written through the same handle while a handler
 * waits for something becomes part of that handler's transaction. Use WAL, and `synchronous = FULL`
 * where the newest records must survive a power cut. Not for files on a network.
 *
 * @param db a better-sqlite3, libsql or `node:sqlite` database; you close it, not we
 * @throws OPTION_INVALID before any I/O
 */
export function sqlite<Db extends SqliteLike>(
  db: Db,
  options: SqliteOptions = {},
): RecordStore<Db> {
  const database = sqliteDatabase(db, options) as SqlDatabase;
  const admin = sqlRecordAdmin(database, recordLayouts.sqlite, ourStoreError);
  return new SqliteRecords<Db>(connectionOf(db), patienceOf(options), admin);
}

/**
 * The database as relays, jobs, sweepers and coordinators use it.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function sqliteDatabase<Db extends SqliteLike>(
  db: Db,
  options: SqliteOptions = {},
): SqlDatabase<Db> {
  return sqliteSqlDatabase<Db>(connectionOf(db), patienceOf(options));
}

/**
 * Staged operations in SQLite; database steps get the same transactions as operations do.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function sqliteStaged<Db extends SqliteLike>(
  db: Db,
  options: SqliteOptions = {},
): StagedStore<Db> {
  const shared = connectionOf(db).isFile;
  const rules = { name: 'sqlite', shared, toError: ourStoreError, isConflict };
  return new SqlStaged(sqliteDatabase(db, options), rules);
}

/**
 * Creates or updates Turngate's tables; safe to call from every process at start-up.
 *
 * @throws STORE_UNAVAILABLE
 */
export async function migrate(db: SqliteLike): Promise<MigrationReport> {
  return await applyMigrations(connectionOf(db), patienceOf({ answerLimitMs: 600_000 }));
}

/** The open transaction of a handle, as flows speak to it. */
export function sqliteSession(tx: unknown): SqlSession {
  return sqliteSessionOf(tx);
}

function patienceOf(options: SqliteOptions): Patience {
  knownOptions('SQLite options', options, ['answerLimitMs']);
  const range = { min: 100, max: 600_000, fallback: 10_000 };
  const limitMs = integerOption('answerLimitMs', options.answerLimitMs, range);
  return { runtime: systemRuntime, limitMs };
}
