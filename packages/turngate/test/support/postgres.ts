/** A database of its own for each test file, on the server of the test run. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { migrate } from '../../src/stores/postgres/index.ts';

/** Empty when this run has no PostgreSQL: its tests are then skipped. */
export const serverUrl: string = inject('postgresUrl');

/** A database with Turngate's tables and a table for effects. */
export interface TestDatabase {
  readonly url: string;
  /** For looking in from outside. */
  readonly admin: pg.Pool;
  /** The committed effect lines that start with `prefix`. */
  lines(prefix: string): Promise<string[]>;
  drop(): Promise<void>;
}

export const effectTable = 'CREATE TABLE effect (line text NOT NULL)';
export const insertEffect = 'INSERT INTO effect (line) VALUES ($1)';
export const selectEffects =
  'SELECT line FROM effect WHERE left(line, length($1)) = $1 ORDER BY line COLLATE "C"';

export async function createDatabase(options: { migrated?: boolean } = {}): Promise<TestDatabase> {
  const name = `turngate_test_${randomBytes(6).toString('hex')}`;
  await asServerAdmin(`CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const admin = createPool(url.href, { max: 3 });
  await admin.query(effectTable);
  if (options.migrated !== false) await migrate(admin);
  return {
    url: url.href,
    admin,
    async lines(prefix) {
      const { rows } = await admin.query<{ line: string }>(selectEffects, [prefix]);
      return rows.map(({ line }) => line);
    },
    async drop() {
      await admin.end();
      await asServerAdmin(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

async function asServerAdmin(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/**
 * A pool whose idle clients may be killed: by a test, or by dropping the database, for `end()`
 * resolves before the server has taken leave of them. Every pool of the tests is made here.
 */
export function createPool(url: string, config: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 10, ...config });
  pool.on('error', () => {});
  return pool;
}

/** A transaction the caller owns on a pool. */
export async function pgTransaction<T>(
  pool: pg.Pool,
  body: (tx: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const value = await body(client);
    await client.query('COMMIT');
    return value;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}
