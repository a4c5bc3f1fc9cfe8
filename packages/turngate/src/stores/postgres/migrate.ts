/** Numbered schema changes, applied once each, by code or by `turngate migrate`. */
import type { PostgresDriver, PostgresSession } from './driver.ts';
import { migrations } from './migrations.generated.ts';
import { ourStoreError } from './postgres-error.ts';

/** What a migration run did. */
export interface MigrationReport {
  /** Names applied by this call, in order; empty when the schema was current. */
  readonly applied: readonly string[];
  /** The version the database has now. */
  readonly version: number;
}

/**
 * Brings the tables to this release's version, in one transaction. Several processes may call it at
 * once: they take turns. A database of a newer release is left as it is.
 *
 * @throws STORE_UNAVAILABLE
 */
export async function applyMigrations(driver: PostgresDriver<unknown>): Promise<MigrationReport> {
  try {
    const { transaction } = await driver.begin([]);
    try {
      const report = await migrateIn(transaction.session);
      await transaction.commit([]);
      return report;
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
  } catch (error) {
    throw ourStoreError(error);
  }
}

async function migrateIn(session: PostgresSession): Promise<MigrationReport> {
  // Ends with the transaction; the number is the name of this lock and means nothing else.
  await session.query('SELECT pg_advisory_xact_lock(7261584460211)', []);
  await session.query(
    `CREATE TABLE IF NOT EXISTS turngate_migration (
      version integer PRIMARY KEY,
      name text NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`,
    [],
  );
  const { rows } = await session.query(
    'SELECT max(version) AS version FROM turngate_migration',
    [],
  );
  const current = Number(rows[0]?.['version'] ?? 0);
  const pending = migrations.filter(({ version }) => version > current);
  for (const { version, name, statements } of pending) {
    for (const statement of statements) await session.query(statement, []);
    await session.query('INSERT INTO turngate_migration (version, name) VALUES ($1, $2)', [
      version,
      name,
    ]);
  }
  return {
    applied: pending.map(({ name }) => name),
    version: Math.max(current, pending.at(-1)?.version ?? 0),
  };
}
