/** Brings the shop's own tables up to date. */
import type { Pool } from 'pg';
import { postgresChanges } from './schema-postgres.ts';

/** Several processes may call it at once. Call it after the library's own `migrate`. */
export async function migrateShop(pool: Pool): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('SELECT pg_advisory_xact_lock(7261584460212)');
    await client.query('CREATE TABLE IF NOT EXISTS shop_migration (version integer PRIMARY KEY)');
    const { rows } = await client.query(
      'SELECT coalesce(max(version), 0) AS v FROM shop_migration',
    );
    for (let version = Number(rows[0].v) + 1; version <= postgresChanges.length; version++) {
      await client.query(postgresChanges[version - 1] as string);
      await client.query('INSERT INTO shop_migration VALUES ($1)', [version]);
    }
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
}
