/** A migrated MariaDB database with a table for effects, and pools of every kind. */
import type { Connection, Pool, PoolConnection, PoolOptions } from 'mysql2/promise';
import { createPool } from 'mysql2/promise';
import { migrate } from '../../src/stores/mysql/index.ts';
import { createMariadbDatabase, type MariadbDatabase } from '../support/mariadb.ts';

export interface TestDatabase extends MariadbDatabase {
  /** The committed effect lines that start with `prefix`. */
  lines(prefix: string): Promise<string[]>;
  /** Pools that end with the database. */
  pool(options?: PoolOptions & { init?: string }): Pool;
}

const insertEffect = 'INSERT INTO effect (line) VALUES (?)';

export async function createDatabase(options: { migrated?: boolean } = {}): Promise<TestDatabase> {
  const database = await createMariadbDatabase();
  const pools: Pool[] = [];
  await database.admin.query('CREATE TABLE effect (line VARBINARY(1024) NOT NULL)');
  if (options.migrated !== false) await migrate(database.admin);
  return {
    ...database,
    async lines(prefix) {
      const [rows] = await database.admin.query(
        'SELECT CONVERT(line USING utf8mb4) AS line FROM effect WHERE LEFT(line, LENGTH(?)) = ? ORDER BY line',
        [Buffer.from(prefix), Buffer.from(prefix)],
      );
      return (rows as { line: string }[]).map(({ line }) => line);
    },
    pool({ init, ...config } = {}) {
      const pool = createPool({ uri: database.url, connectionLimit: 10, ...config });
      if (init !== undefined)
        pool.pool.on('connection', (connection) => void connection.query(init));
      pools.push(pool);
      return pool;
    },
    async drop() {
      await Promise.all(pools.map((pool) => pool.end()));
      await database.drop();
    },
  };
}

/** A transaction the caller owns. */
export async function ownTransaction<T>(
  pool: Pool,
  body: (tx: PoolConnection) => Promise<T>,
): Promise<T> {
  const connection = await pool.getConnection();
  try {
    await connection.beginTransaction();
    const value = await body(connection);
    await connection.commit();
    return value;
  } catch (error) {
    await connection.rollback();
    throw error;
  } finally {
    connection.release();
  }
}

export async function write(tx: Pick<Connection, 'query'>, line: string): Promise<void> {
  await tx.query(insertEffect, [Buffer.from(line)]);
}
