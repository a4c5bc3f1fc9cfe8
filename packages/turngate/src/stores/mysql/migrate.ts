/** Numbered schema changes, applied once each, by code or by `turngate migrate`. */
import type { Link, MysqlDriver } from './driver.ts';
import { bytes, integer } from './literal.ts';
import { migrations } from './migrations.generated.ts';
import { ourStoreError } from './mysql-error.ts';

/** What a migration run did. */
export interface MigrationReport {
  /** Names applied by this call, in order; empty when the schema was current. */
  readonly applied: readonly string[];
  /** The version the database has now. */
  readonly version: number;
}

const lock = `CONCAT(LEFT(SHA2(DATABASE(), 256), 12), '_turngate_migration')`;
const lockWaitSeconds = 5;

/**
 * Brings the tables to this release's version. Several processes may call it at once: they take
 * turns. MySQL commits each schema change by itself, so every statement can be repeated after a
 * crash. A database of a newer release is left as it is.
 *
 * @throws STORE_UNAVAILABLE
 */
export async function applyMigrations(driver: MysqlDriver<unknown>): Promise<MigrationReport> {
  try {
    const link = await driver.connect();
    try {
      const report = await migrateOn(link);
      link.release();
      return report;
    } catch (error) {
      link.destroy(); // With the lock, if we have it.
      throw error;
    }
  } catch (error) {
    throw ourStoreError(error);
  }
}

async function migrateOn(link: Link): Promise<MigrationReport> {
  const [locked] = await link.batch([`SELECT GET_LOCK(${lock}, ${lockWaitSeconds}) AS got`]);
  if (locked?.rows[0]?.[0] !== '1') throw new Error('another process is migrating this database');
  await link.batch([
    `CREATE TABLE IF NOT EXISTS turngate_migration (
      version    INT NOT NULL,
      name       VARBINARY(255) NOT NULL,
      applied_at DATETIME(6) NOT NULL,
      PRIMARY KEY (version)
    ) ENGINE = InnoDB`,
  ]);
  const [found] = await link.batch(['SELECT MAX(version) FROM turngate_migration']);
  const current = Number(found?.rows[0]?.[0] ?? 0);
  const pending = migrations.filter(({ version }) => version > current);
  for (const { version, name, statements } of pending) {
    for (const statement of statements) await link.batch([statement]);
    const values = [integer(version), bytes(name), 'UTC_TIMESTAMP(6)'].join(', ');
    await link.batch([
      `INSERT INTO turngate_migration (version, name, applied_at) VALUES (${values})`,
    ]);
  }
  await link.batch([`DO RELEASE_LOCK(${lock})`]);
  return {
    applied: pending.map(({ name }) => name),
    version: Math.max(current, pending.at(-1)?.version ?? 0),
  };
}
