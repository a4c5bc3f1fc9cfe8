/** The database of a run: the one of DATABASE_URL, or an embedded one; always a schema of its own. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { startEmbeddedPostgres } from '@turngate/embedded-postgres';
import pg from 'pg';
import type { SqlSession } from 'turngate/contract';
import { postgresShop } from '../database/postgres.ts';
import { scenarios } from './scenarios.ts';
import { labTables } from './schema.ts';

export interface DatabaseAddress {
  readonly url: string;
  readonly schema: string;
}

export interface LabDatabase {
  readonly address: DatabaseAddress;
  readonly pool: pg.Pool;
  readonly serverVersion: string;
  /** Drops the schema; stops the server and removes its files if they are ours. */
  close(): Promise<void>;
}

interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

const ownConnectionsMax = 4;

/** A pool whose connections see the run's schema and nothing else. */
export function openPool(
  { url, schema }: DatabaseAddress,
  connectionsMax: number,
  stream?: () => Duplex,
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: connectionsMax,
    ...(stream && { stream }),
    options: `-c search_path=${schema}`,
  });
  // A connection that dies while idle is replaced; without a listener it would end the process.
  pool.on('error', () => {});
  return pool;
}

export async function openDatabase(givenUrl: string | undefined): Promise<LabDatabase> {
  const server = givenUrl ? { url: givenUrl, stop: async () => {} } : await startOwnServer();
  const address = { url: server.url, schema: `turngate_lab_${randomBytes(6).toString('hex')}` };
  const pool = openPool(address, ownConnectionsMax);
  const close = async (): Promise<void> => {
    try {
      await pool.query(`DROP SCHEMA IF EXISTS ${address.schema} CASCADE`);
    } finally {
      await pool.end();
      await server.stop();
    }
  };
  try {
    const serverVersion = await createSchema(pool, address.schema);
    return { address, pool, serverVersion, close };
  } catch (error) {
    await close().catch(() => {}); // The first error is the one to show.
    throw error;
  }
}

/** Forgets what the storms before have left in the run's schema. */
export async function emptyTables(sql: Pick<SqlSession, 'query'>): Promise<void> {
  const { rows } = await sql.query(
    `SELECT string_agg(quote_ident(tablename), ', ') AS names FROM pg_tables
     WHERE schemaname = current_schema() AND tablename NOT LIKE '%migration%'`,
    [],
  );
  await sql.query(`TRUNCATE ${rows[0]?.['names']} RESTART IDENTITY CASCADE`, []);
}

async function startOwnServer(): Promise<Server> {
  const dataDir = await mkdtemp(join(tmpdir(), 'turngate-lab-'));
  const removeFiles = (): Promise<void> =>
    rm(dataDir, { recursive: true, force: true, maxRetries: 10 });
  try {
    const server = await startEmbeddedPostgres({ dataDir, initNoSync: true });
    const stop = async (): Promise<void> => {
      await server.stop('immediate'); // Nothing in it is needed again.
      await removeFiles();
    };
    return { url: server.url, stop };
  } catch (error) {
    await removeFiles();
    throw error;
  }
}

async function createSchema(pool: pg.Pool, schema: string): Promise<string> {
  await pool.query(`CREATE SCHEMA ${schema}`);
  const { rows } = await pool.query(
    "SELECT current_schema() AS schema, current_setting('server_version') AS version",
  );
  const [row] = rows as { schema: string | null; version: string }[];
  // Options in the connection string win over ours, and the lab must not write elsewhere.
  if (row?.schema !== schema) {
    throw new Error('the connection does not take our search_path: remove options= from its URL');
  }
  await postgresShop(pool).migrate();
  const tables = Object.values(scenarios).flatMap((scenario) => scenario.tables ?? []);
  for (const statement of [...labTables, ...tables]) await pool.query(statement);
  return row.version;
}
