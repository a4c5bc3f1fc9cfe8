/** Opening the PostgreSQL stores over a client the caller made and will end. */
import type { LockStore } from '../../contract/lock-store.ts';
import type { RecordStore } from '../../contract/record-store.ts';
import type { SqlDatabase, SqlSession } from '../../contract/sql-session.ts';
import { noSteps } from '../../contract/sql-together.ts';
import type { StagedStore } from '../../contract/staged-store.ts';
import { integerOption, knownOptions, optionError } from '../../core/option.ts';
import { systemRuntime } from '../../runtime/runtime.ts';
import { sqlRecordAdmin } from '../sql/record-admin.ts';
import { recordLayouts } from '../sql/record-layouts.ts';
import { SqlStaged } from '../sql/sql-staged.ts';
import { driverOf, type PostgresClient, type PostgresTxOf, sessionOf } from './clients.ts';
import type { PostgresDriver } from './driver.ts';
import { withLimits } from './limits.ts';
import { applyMigrations, type MigrationReport } from './migrate.ts';
import { namedStep } from './named-step.ts';
import { isConflict, ourStoreError } from './postgres-error.ts';
import { PostgresLocks } from './postgres-locks.ts';
import { PostgresRecords } from './postgres-records.ts';
import type { Step } from './statements.ts';

/** Options of the PostgreSQL stores. */
export interface PostgresOptions {
  /**
   * Prepare each statement once per connection. Set it to false behind a pooler in transaction mode
   * that does not track prepared statements (PgBouncer before 1.21); costs about a quarter of the
   * throughput.
   *
   * @default true
   */
  readonly prepare?: boolean;
  /**
   * How long the server may take to answer one of our statements, waiting for a free connection
   * included. After it the call ends in STORE_UNAVAILABLE, or is settled by reading if it was the
   * commit. Handlers' own statements are not limited by it.
   *
   * @unit milliseconds, integer, 100 to 600_000
   * @default 10_000
   */
  readonly answerLimitMs?: number;
}

/**
 * Idempotency records in PostgreSQL, in one transaction with your writes.
 *
 * @param client a `pg.Pool`, a postgres.js `sql`, or a PGlite database; you end it, not we
 * @throws OPTION_INVALID before any I/O
 */
export function postgres<Client extends PostgresClient>(
  client: Client,
  options: PostgresOptions = {},
): RecordStore<PostgresTxOf<Client>> {
  const database = postgresDatabase(client, options) as SqlDatabase;
  const admin = sqlRecordAdmin(database, recordLayouts.postgres, ourStoreError);
  const records = new PostgresRecords(open(client, options), admin);
  return records as unknown as RecordStore<PostgresTxOf<Client>>;
}

/**
 * Locks in a PostgreSQL table. Not for PGlite alone if you need exclusion between processes: it is
 * one process by nature.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function postgresLocks(client: PostgresClient, options: PostgresOptions = {}): LockStore {
  return new PostgresLocks(open(client, options));
}

/**
 * Creates or updates Turngate's tables; safe to call from every process at start-up.
 *
 * @throws STORE_UNAVAILABLE
 */
export async function migrate(client: PostgresClient): Promise<MigrationReport> {
  return await applyMigrations(driverOf(client, false));
}

/**
 * The database as relays, jobs, sweepers and coordinators use it.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function postgresDatabase<Client extends PostgresClient>(
  client: Client,
  options: PostgresOptions = {},
): SqlDatabase<PostgresTxOf<Client>> {
  const driver = open(client, options);
  const server = { dialect: 'postgres' } as const;
  return {
    ...server,
    session: sessionOf,
    query: (text, values) => driver.adopt(client).query(text, values),
    async transaction(work, { first = noSteps, last = noSteps } = {}) {
      const { transaction, answers } = await driver.begin(first(server).map(namedStep));
      const { session, tx } = transaction;
      let value: Awaited<ReturnType<typeof work>>;
      let steps: readonly Step[];
      try {
        const inside = (): ReturnType<typeof work> =>
          work(session, tx as PostgresTxOf<Client>, answers);
        value = await (driver.enter === undefined ? inside() : driver.enter(inside));
        steps = last(value).map(namedStep);
      } catch (error) {
        await transaction.rollback(error);
        throw error;
      }
      await transaction.commit(steps);
      return value;
    },
  };
}

/**
 * Staged operations in PostgreSQL; database steps get the same transactions as operations do.
 *
 * @param client a `pg.Pool`, a postgres.js `sql`, or a PGlite database; you end it, not we
 * @throws OPTION_INVALID before any I/O
 */
export function postgresStaged<Client extends PostgresClient>(
  client: Client,
  options: PostgresOptions = {},
): StagedStore<PostgresTxOf<Client>> {
  const { shared } = driverOf(client, false);
  const database = postgresDatabase(client, options);
  const rules = { name: 'postgres', shared, toError: ourStoreError, isConflict };
  return new SqlStaged(database, rules);
}

/** The open transaction behind a handler's `tx`, as flows speak to it. */
export function postgresSession(tx: unknown): SqlSession {
  return sessionOf(tx);
}

function open(client: unknown, options: PostgresOptions): PostgresDriver<unknown> {
  knownOptions('PostgreSQL options', options, ['prepare', 'answerLimitMs']);
  const { prepare = true } = options;
  if (typeof prepare !== 'boolean') throw optionError('prepare', 'true or false', prepare);
  const range = { min: 100, max: 600_000, fallback: 10_000 };
  const limitMs = integerOption('answerLimitMs', options.answerLimitMs, range);
  return withLimits(driverOf(client, prepare), systemRuntime, limitMs);
}
