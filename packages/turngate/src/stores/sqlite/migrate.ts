/** Numbered schema changes, applied once each, by code. */
import type { SqliteConnection } from './client.ts';
import { migrations } from './migrations.generated.ts';
import { ourStoreError } from './sqlite-error.ts';
import { begin, commit, type Patience, rollBack } from './transaction.ts';

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
export async function applyMigrations(
  connection: SqliteConnection,
  patience: Patience,
): Promise<MigrationReport> {
  try {
    return await connection.turn(async () => {
      await begin(connection, patience);
      try {
        const report = migrateIn(connection);
        await commit(connection, patience, { undo: false });
        return report;
      } catch (error) {
        rollBack(connection);
        throw error;
      }
    });
  } catch (error) {
    throw ourStoreError(error);
  }
}

function migrateIn(connection: SqliteConnection): MigrationReport {
  connection.db.exec(
    `CREATE TABLE IF NOT EXISTS turngate_migration (
      version    INTEGER NOT NULL PRIMARY KEY,
      name       TEXT NOT NULL,
      applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
    ) STRICT`,
  );
  const { rows } = connection.querySync(
    'SELECT max(version) AS version FROM turngate_migration',
    [],
  );
  const current = Number(rows[0]?.['version'] ?? 0);
  const pending = migrations.filter(({ version }) => version > current);
  for (const { version, name, statements } of pending) {
    for (const statement of statements) connection.db.exec(statement);
    connection.querySync('INSERT INTO turngate_migration (version, name) VALUES ($1, $2)', [
      version,
      name,
    ]);
  }
  return {
    applied: pending.map(({ name }) => name),
    version: Math.max(current, pending.at(-1)?.version ?? 0),
  };
}
