// What suites on SQL share: both servers with durable settings, on loopback and through the proxy.
import { startMariadb } from '@turngate/test-servers';
import mysql from 'mysql2/promise';
import pg from 'pg';
import * as mysqlStore from 'turngate/mysql';
import * as postgresStore from 'turngate/postgres';
import { SCHEMA } from '../scenarios/workload.mjs';
import { startDelayProxy } from './delay-proxy.mjs';
import { measure } from './measure.mjs';
import { NETWORKS } from './report.mjs';
import { startPostgres, throughPort } from './servers.mjs';
import { ratioRows } from './tables.mjs';

const ACCOUNTS = 10_000;
export const IN_FLIGHT = 16;

/** Calls per second, p50 and p99 against the base. */
export const RATE_COLUMNS = [
  { key: 'opsPerSecond', label: 'calls/s ÷ base', better: 'more' },
  { key: 'p50Us', label: 'p50', better: 'less' },
  { key: 'p99Us', label: 'p99', better: 'less' },
];

/** `fsync` and alike stay on: MariaDB's default is one flush per commit. */
export async function startSqlServers({ say }) {
  say('starting PostgreSQL and MariaDB with durable settings');
  const postgres = await startPostgres();
  const mariadb = await startMariadb().catch(async (error) => {
    await postgres.stop();
    throw error;
  });
  const admins = await openAdmins(postgres, mariadb);
  return {
    postgres,
    mariadb: admins.mariadb,
    admin: admins.postgres,
    versions: await versionsOf(admins),
    async stop() {
      await admins.postgres.end();
      await admins.mariadb.admin.end();
      await postgres.stop();
      await mariadb.stop();
    },
  };
}

async function openAdmins(postgres, mariadb) {
  const admin = openPg(postgres.url, 1);
  await postgresStore.migrate(admin);
  await admin.query(SCHEMA);
  await admin.query('VACUUM ANALYZE accounts');
  const first = await mysql.createConnection({ uri: mariadb.url });
  await first.query('CREATE DATABASE bench');
  await first.end();
  const url = new URL(mariadb.url);
  url.pathname = '/bench';
  const mariadbAdmin = mysql.createPool({ uri: url.href, connectionLimit: 2 });
  await mysqlStore.migrate(mariadbAdmin);
  await mariadbAdmin.query(
    'CREATE TABLE accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL DEFAULT 0)',
  );
  await mariadbAdmin.query(`INSERT INTO accounts (id) SELECT seq FROM seq_1_to_${ACCOUNTS}`);
  return {
    postgres: admin,
    mariadb: { url: url.href, port: mariadb.port, admin: mariadbAdmin },
  };
}

async function versionsOf({ postgres, mariadb }) {
  const [[{ version }]] = await mariadb.admin.query('SELECT VERSION() AS version');
  const { rows } = await postgres.query('SHOW server_version');
  return { postgresql: rows[0].server_version, mariadb: version };
}

/** A pool of node-postgres as all rows use it. */
export const openPg = (url, max = IN_FLIGHT) => {
  const pool = new pg.Pool({ connectionString: url, max, idleTimeoutMillis: 0 });
  pool.on('error', () => {}); // The server goes before the last sockets do.
  return pool;
};

/** A pool of mysql2, promise style. */
export const openMysql = (url, more = {}) =>
  mysql.createPool({ uri: url, connectionLimit: IN_FLIGHT, idleTimeout: 0, ...more });

/** Measures a scenario on both networks. `open(url)` gives clients with `close`. */
export async function overNetworks(scenario, server, { open, reset }, { options, signal, say }) {
  const tables = [];
  for (const network of options.rttMs === 0 ? ['loopback'] : ['loopback', 'rtt']) {
    const proxy =
      network === 'rtt'
        ? await startDelayProxy({ targetPort: server.port, eachWayMs: options.rttMs / 2 })
        : undefined;
    const clients = await open(proxy ? throughPort(server.url, proxy.port) : server.url);
    try {
      const title = `${scenario.title}, ${NETWORKS[network]}`;
      const calls = options.quick ? 200 : (scenario.calls ?? 1_000);
      const rounds = options.rounds ?? (options.quick ? 3 : 11);
      const rows = await measure(scenario, {
        clients,
        reset,
        options: { calls, rounds },
        signal,
        inFlight: scenario.inFlight ?? IN_FLIGHT,
        onRound: (round) => say(`${title}: round ${round} of ${rounds}`),
      });
      const id = `${scenario.id}-${network}`;
      tables.push({ id, title, columns: RATE_COLUMNS, rows: ratioRows(rows) });
    } finally {
      await clients.close();
      await proxy?.stop();
    }
  }
  return tables;
}
