/** PostgreSQL crashes, and holders are lost, in table mode and in session mode. */
import { type EmbeddedPostgres, startEmbeddedPostgres } from '@turngate/embedded-postgres';
import { type TemporaryDir, temporaryDir } from '@turngate/test-servers';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { migrate as migratePostgres } from '../../src/stores/postgres/index.ts';
import { createPool } from '../support/postgres.ts';
import { lapsed } from './leftovers.ts';
import { atOnceMs, crashLaw, pollBoundMs } from './sql-crash.ts';
import { takeovers } from './takeover.ts';

const leaseMs = 1_000;
const bound = leaseMs + pollBoundMs;

describe('PostgreSQL', () => {
  let dir: TemporaryDir;
  let server: EmbeddedPostgres;
  const table = (url: string) => ({ kind: 'postgres', mode: 'table', url });
  const session = (url: string) => ({ kind: 'postgres', mode: 'session', url });
  const start = async (port?: number): Promise<void> => {
    const options = {
      dataDir: dir.path,
      initNoSync: true,
      ...(port === undefined ? {} : { port }),
    };
    server = await startEmbeddedPostgres(options);
  };
  const database = {
    get url() {
      return server.url;
    },
    async crash() {
      server.kill();
      await server.exited;
      await start(server.port);
    },
  };
  async function ask(text: string): Promise<unknown[]> {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  }
  beforeAll(async () => {
    dir = await temporaryDir('chaos-pg');
    await start();
    const pool = createPool(server.url, { max: 1 });
    await migratePostgres(pool);
    await pool.end();
  });
  afterAll(async () => {
    await server?.stop('immediate');
    await dir?.remove();
  });
  afterEach(async () => {
    const left = () =>
      ask(`SELECT 'advisory lock' AS what FROM pg_locks WHERE locktype = 'advisory'
      UNION ALL SELECT name FROM turngate_lock WHERE expires_at > clock_timestamp()`);
    expect(await lapsed(async () => (await left()).map((row) => JSON.stringify(row)))).toEqual([]);
    expect(await ask("SELECT name FROM turngate_lock WHERE name <> 'hot'")).toEqual([]);
  });

  it('table mode: a holder killed, frozen or cut off, the next one gets in within the lease', async () => {
    const bounds = { killed: bound, frozen: bound, partitioned: bound };
    const serverUrl = server.url;
    await takeovers({ name: 'PostgreSQL table', serverUrl, store: table, leaseMs, ...bounds });
  });

  it('session mode: a killed holder frees at once, a frozen or cut off one keeps the lock', async () => {
    const serverUrl = server.url;
    const target = { name: 'PostgreSQL session', serverUrl, store: session, leaseMs };
    await takeovers({ ...target, killed: atOnceMs, endsWithProcess: true });
  });

  it('table mode: a crash of the server takes the lock from nobody', async () => {
    await crashLaw('PostgreSQL table', database, table(server.url), true);
  });

  it('session mode: a crash of the server ends the locks, and the holder is told', async () => {
    await crashLaw('PostgreSQL session', database, session(server.url), false);
  });
});
