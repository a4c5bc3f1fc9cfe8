// A local branch behind the barrier against the business transaction alone, on both databases.
import { mysqlDatabase } from 'turngate/mysql';
import { postgresDatabase } from 'turngate/postgres';
import { createBarrier, gidAt } from 'turngate/saga';
import { openMysql, openPg, overNetworks } from '../lib/sql-suite.mjs';
import { freshRequest } from '../scenarios/workload.mjs';

async function oneUpdate(sql, account) {
  await sql.query('UPDATE accounts SET balance = balance + 1 WHERE id = $1', [account]);
  return account;
}

/** What a branch usually does: look, change, write down. */
async function threeStatements(sql, account) {
  await sql.query('SELECT balance FROM accounts WHERE id = $1 FOR UPDATE', [account]);
  await oneUpdate(sql, account);
  await sql.query('INSERT INTO bench_line (account) VALUES ($1)', [account]);
  return account;
}

/** BEGIN, the work, COMMIT, through the client alone. */
const bare =
  (work) =>
  ({ begin, database }) => ({
    async call({ account }) {
      const client = await begin();
      try {
        const value = await work(database.session(client), account);
        await client.query('COMMIT');
        return value;
      } finally {
        client.release();
      }
    },
  });

const branchOf = ({ key, account }) => ({
  gid: gidAt(Date.now(), key),
  branch: 'add',
  op: 'try',
  payload: { account },
});

/** As a participant runs it: in a transaction of its own. */
const guarded =
  (work) =>
  ({ database }) => {
    const barrier = createBarrier();
    return {
      async call(request) {
        const body = (sql) => work(sql, request.account);
        return (await barrier.transact(database, branchOf(request), body)).value;
      },
    };
  };

/** In a transaction that the caller opened, with the savepoint that needs. */
const guardedWithin =
  (work) =>
  ({ begin, database }) => {
    const barrier = createBarrier();
    return {
      async call(request) {
        const client = await begin();
        try {
          const sql = database.session(client);
          const body = () => work(sql, request.account);
          const { value } = await barrier.call(sql, branchOf(request), body);
          await client.query('COMMIT');
          return value;
        } finally {
          client.release();
        }
      },
    };
  };

const scenario = (id, title, work) => ({
  id: `barrier-${id}`,
  title: `Barrier on ${title}`,
  requests: () => ({ next: freshRequest }),
  base: { id: 'bare', label: 'bare transaction', open: bare(work) },
  variants: [
    { id: 'turngate-barrier', label: '**Turngate**, barrier', open: guarded(work) },
    {
      id: 'turngate-barrier-within',
      label: "**Turngate**, barrier in the caller's transaction",
      open: guardedWithin(work),
    },
  ],
});

const BRANCHES = [
  ['one', 'a branch of one UPDATE', oneUpdate],
  ['three', 'a branch of three statements', threeStatements],
];

const goal = (id, title) => ({
  table: `barrier-${id}-loopback`,
  row: 'turngate-barrier',
  key: 'p50Us',
  atMost: 1.6,
  what: `barrier, ${title}: time ÷ bare`,
});

export const barrier = {
  id: 'barrier',
  title: 'Barrier',
  goals: BRANCHES.flatMap(([size, title]) => [
    goal(`pg-${size}`, `PostgreSQL, ${title}`),
    goal(`mariadb-${size}`, `MariaDB, ${title}`),
  ]),
  async run(context) {
    const { postgres: pg, mariadb, admin } = context;
    const onPg = {
      reset: () => admin.query('TRUNCATE turngate_branch'),
      open(url) {
        const pool = openPg(url);
        const begin = async () => {
          const client = await pool.connect();
          await client.query('BEGIN');
          return client;
        };
        return { database: postgresDatabase(pool), begin, close: () => pool.end() };
      },
    };
    const onMariadb = {
      reset: () => mariadb.admin.query('TRUNCATE turngate_branch'),
      open(url) {
        const pool = openMysql(url, { multipleStatements: true });
        const begin = async () => {
          const client = await pool.getConnection();
          await client.query('BEGIN');
          return client;
        };
        return { database: mysqlDatabase(pool), begin, close: () => pool.end() };
      },
    };
    await admin.query('CREATE TABLE bench_line (account int NOT NULL)');
    await mariadb.admin.query('CREATE TABLE bench_line (account INT NOT NULL)');
    const tables = [];
    for (const [size, title, work] of BRANCHES) {
      const pgScenario = scenario(`pg-${size}`, `PostgreSQL, ${title}`, work);
      const mariadbScenario = scenario(`mariadb-${size}`, `MariaDB, ${title}`, work);
      tables.push(...(await overNetworks(pgScenario, pg, onPg, context)));
      tables.push(...(await overNetworks(mariadbScenario, mariadb, onMariadb, context)));
    }
    return tables;
  },
};
