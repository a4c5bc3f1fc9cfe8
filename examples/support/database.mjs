// A PostgreSQL for one example: DATABASE_URL if it is set (in a schema of its own, dropped at the
// end), otherwise an embedded server in a temporary folder.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '@turngate/embedded-postgres';
import pg from 'pg';

/** Runs `body` with a pool on an empty schema and cleans up whatever happens. */
export async function withDatabase(body) {
  const database = await openDatabase();
  try {
    await body(database.pool);
  } finally {
    await database.close();
  }
}

/** A pool on an empty schema; `close` ends it and removes what was made. */
export async function openDatabase() {
  const server = process.env.DATABASE_URL
    ? { url: process.env.DATABASE_URL, stop: async () => {} }
    : await startServer();
  const schema = `turngate_example_${randomBytes(6).toString('hex')}`;
  const admin = openPool({ connectionString: server.url, max: 1 });
  await admin.query(`CREATE SCHEMA ${schema}`);
  const pool = openPool({
    connectionString: server.url,
    max: 10,
    options: `-c search_path=${schema}`,
  });
  return {
    pool,
    async close() {
      await pool.end();
      await admin.query(`DROP SCHEMA ${schema} CASCADE`);
      await admin.end();
      await server.stop();
    },
  };
}

/** Without a listener, an idle connection that the server ends would end the process. */
function openPool(options) {
  const pool = new pg.Pool(options);
  pool.on('error', (error) => console.error(`lost an idle connection: ${error.message}`));
  return pool;
}

async function startServer() {
  const dataDir = mkdtempSync(join(tmpdir(), 'turngate-example-'));
  const server = await startEmbeddedPostgres({ dataDir, initNoSync: true });
  return {
    url: server.url,
    async stop() {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}
