/** MariaDB crashes, and holders are lost, in table mode and with GET_LOCK. */
import { startMariadb, type TestServer } from '@turngate/test-servers';
import { createConnection, createPool } from 'mysql2/promise';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { migrate as migrateMysql } from '../../src/stores/mysql/index.ts';
import { lapsed } from './leftovers.ts';
import { describeNeeding } from './needs.ts';
import { atOnceMs, crashLaw, pollBoundMs } from './sql-crash.ts';
import { takeovers } from './takeover.ts';

const leaseMs = 1_000;
const bound = leaseMs + pollBoundMs;

describeNeeding(['mariadbd'], 'MariaDB', () => {
  let server: TestServer;
  let url: string;
  const table = (at: string) => ({ kind: 'mariadb', mode: 'table', url: at });
  const session = (at: string) => ({ kind: 'mariadb', mode: 'session', url: at });
  const database = {
    get url() {
      return url;
    },
    async crash() {
      await server.kill();
      await server.restart();
    },
  };
  beforeAll(async () => {
    server = await startMariadb();
    const admin = await createConnection(server.url);
    await admin.query('CREATE DATABASE chaos');
    await admin.end();
    url = `${server.url}chaos`;
    const pool = createPool({ uri: url, connectionLimit: 1 });
    await migrateMysql(pool);
    await pool.end();
  });
  afterAll(async () => {
    await server?.stop();
  });
  afterEach(async () => {
    const admin = await createConnection(url);
    // A user lock lives in a connection: where no connection is left, there is no lock.
    const look = async (): Promise<string[]> => {
      const [rows] = await admin.query(`SELECT CONCAT('connection ', id) AS what
        FROM information_schema.processlist WHERE db = 'chaos' AND id <> CONNECTION_ID()
        UNION ALL SELECT name FROM turngate_lock WHERE expires_us > UNIX_TIMESTAMP(NOW(6)) * 1000000`);
      return (rows as { what: string }[]).map(({ what }) => what);
    };
    try {
      expect(await lapsed(look)).toEqual([]);
    } finally {
      await admin.end();
    }
  });

  it('table mode: a holder killed, frozen or cut off, the next one gets in within the lease', async () => {
    const bounds = { killed: bound, frozen: bound, partitioned: bound };
    await takeovers({ name: 'MariaDB table', serverUrl: url, store: table, leaseMs, ...bounds });
  });

  it('GET_LOCK: a killed holder frees at once, a frozen or cut off one keeps the lock', async () => {
    const target = { name: 'MariaDB GET_LOCK', serverUrl: url, store: session, leaseMs };
    await takeovers({ ...target, killed: atOnceMs, endsWithProcess: true });
  });

  it('table mode: a crash of the server takes the lock from nobody', async () => {
    await crashLaw('MariaDB table', database, table(url), true);
  });

  it('GET_LOCK: a crash of the server ends the locks, and the holder is told', async () => {
    await crashLaw('MariaDB GET_LOCK', database, session(url), false);
  });
});
