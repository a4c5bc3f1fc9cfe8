/** The server under load, a process of its own: one route, the scheme in the path. */
import Fastify from 'fastify';
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import { migrate as migrateMysql } from 'turngate/mysql';
import { migrate } from 'turngate/postgres';
import { mysqlSchemes, postgresSchemes, type Scheme, type SchemeName } from './schemes.ts';

const connections = 20;
const rowsMax = 200_000;
const url = process.env['LOAD_DATABASE_URL'] as string;
const redis = new Redis(process.env['LOAD_REDIS_URL'] as string);

const schema = [
  'CREATE TABLE load_event (order_no VARCHAR(64) PRIMARY KEY)',
  'CREATE TABLE load_order (order_no VARCHAR(64) PRIMARY KEY, status VARCHAR(16) NOT NULL)',
];

async function openPostgres(): Promise<Opened> {
  const pool = new pg.Pool({ connectionString: url, max: connections });
  pool.on('error', () => undefined); // The server goes before the last connection does.
  await migrate(pool);
  for (const text of schema) await pool.query(text);
  const reset = async (): Promise<void> => {
    await pool.query('TRUNCATE load_event, load_order, turngate_record');
    await pool.query(
      `INSERT INTO load_order SELECT n::text, 'NEW' FROM generate_series(1, ${rowsMax}) n`,
    );
    await pool.query('VACUUM ANALYZE load_order');
  };
  return { schemes: postgresSchemes(pool, redis), reset };
}

async function openMariadb(): Promise<Opened> {
  const pool = createPool({ uri: url, connectionLimit: connections, multipleStatements: true });
  await migrateMysql(pool);
  for (const text of schema) await pool.query(text);
  const reset = async (): Promise<void> => {
    for (const table of ['load_event', 'load_order', 'turngate_record']) {
      await pool.query(`TRUNCATE ${table}`);
    }
    // The default ends the recursion after 1,000 rows, with a warning only.
    await pool.query(
      `SET max_recursive_iterations = ${rowsMax + 1};
       INSERT INTO load_order WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n
         WHERE i < ${rowsMax}) SELECT i, 'NEW' FROM n`,
    );
  };
  return { schemes: mysqlSchemes(pool, redis), reset };
}

interface Opened {
  readonly schemes: Record<SchemeName, Scheme>;
  /** Fresh orders, nothing recorded. */
  reset(): Promise<void>;
}

const opened = url.startsWith('postgres') ? await openPostgres() : await openMariadb();
const app = Fastify();
app.post<{ Params: { scheme: SchemeName; orderNo: string } }>(
  '/callback/:scheme/:orderNo',
  async ({ params: { scheme, orderNo } }) => ({ code: await opened.schemes[scheme](orderNo) }),
);
app.post('/reset', async () => {
  await opened.reset();
  await redis.flushall();
  return {};
});
/** Microseconds of processor time of this process so far. */
app.get('/cpu', async () => {
  const { user, system } = process.cpuUsage();
  return { us: user + system };
});
process.send?.({ base: await app.listen({ host: '127.0.0.1', port: 0 }) });
process.on('disconnect', () => process.exit(0)); // Whoever started it is gone.
