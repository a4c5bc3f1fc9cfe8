// First calls on MariaDB, with and without several statements per trip.
import { createGate } from 'turngate';
import { mysql } from 'turngate/mysql';
import { openMysql, overNetworks } from '../lib/sql-suite.mjs';
import { freshRequest } from '../scenarios/workload.mjs';

const UPDATE = 'UPDATE accounts SET balance = balance + 1 WHERE id = ?';

async function work(connection, account) {
  const [{ affectedRows }] = await connection.query(UPDATE, [account]);
  return affectedRows;
}

async function transaction(pool, body) {
  const connection = await pool.getConnection();
  try {
    await connection.query('BEGIN');
    const result = await body(connection);
    await connection.query('COMMIT');
    return result;
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => {});
    throw error;
  } finally {
    connection.release();
  }
}

const bare = ({ pool }) => ({
  call: ({ account }) => transaction(pool, (connection) => work(connection, account)),
});

const byHand = ({ pool }) => ({
  call: ({ key, account }) =>
    transaction(pool, async (connection) => {
      await connection.query('INSERT INTO idem (op_key) VALUES (?)', [key]);
      const result = await work(connection, account);
      await connection.query('UPDATE idem SET result = ? WHERE op_key = ?', [result, key]);
      return result;
    }),
});

/** The business update as the handler of an operation. */
export function guarded(pool) {
  const gate = createGate({ records: mysql(pool), memoryCharsMax: 0 });
  const operation = gate.operation({
    name: 'account.add',
    key: ({ key }) => key,
    fingerprint: ({ account }) => ({ account }),
    run: async ({ account }, { tx }) => ({ rows: await work(tx, account) }),
  });
  return {
    call: async (request) => (await operation(request)).value.rows,
    close: () => gate.close(),
  };
}

/** The same as one declared statement: claim and write in one trip. */
function declaredWrite(pool) {
  const gate = createGate({ records: mysql(pool), memoryCharsMax: 0 });
  const write = gate.singleWrite({
    name: 'account.add',
    key: ({ key }) => key,
    fingerprint: ({ account }) => ({ account }),
    statement: 'UPDATE accounts SET balance = balance + 1 WHERE id = $1',
    values: ({ account }) => [account],
  });
  return {
    call: async (request) => (await write(request)).value,
    close: () => gate.close(),
  };
}

const variant = (id, label, open) => ({ id, label, open });

const first = {
  id: 'mariadb-first',
  title: 'MariaDB, first call',
  requests: () => ({ next: freshRequest }),
  base: variant('bare-mariadb', 'bare: BEGIN, UPDATE, COMMIT', bare),
  variants: [
    variant('by-hand-mariadb', 'by hand: key, work, result', byHand),
    variant('turngate-mariadb-write', '**Turngate**, single write', ({ many }) =>
      declaredWrite(many),
    ),
    variant('turngate-mariadb', '**Turngate**, `multipleStatements: true`', ({ many }) =>
      guarded(many),
    ),
    variant('turngate-mariadb-single', '**Turngate**, one statement per trip', ({ pool }) =>
      guarded(pool),
    ),
  ],
};

export const mariadbCalls = {
  id: 'mariadb',
  title: 'Calls on MariaDB',
  goals: [
    {
      table: 'mariadb-first-loopback',
      row: 'turngate-mariadb-write',
      key: 'opsPerSecond',
      atLeast: 0.9,
      what: 'single write, MariaDB: calls/s ÷ bare',
    },
    {
      table: 'mariadb-first-rtt',
      row: 'turngate-mariadb-write',
      key: 'opsPerSecond',
      atLeast: 1.8,
      what: 'the same at +2 ms',
    },
    {
      table: 'mariadb-first-loopback',
      row: 'turngate-mariadb',
      key: 'opsPerSecond',
      atLeast: 0.9,
      what: 'any code, MariaDB: calls/s ÷ bare',
    },
    {
      table: 'mariadb-first-rtt',
      row: 'turngate-mariadb',
      key: 'opsPerSecond',
      atLeast: 0.85,
      what: 'the same at +2 ms',
    },
  ],
  async run(context) {
    const { mariadb } = context;
    await mariadb.admin.query(
      'CREATE TABLE idem (op_key VARCHAR(64) PRIMARY KEY, result VARCHAR(200))',
    );
    const terms = {
      async reset() {
        await mariadb.admin.query('TRUNCATE idem');
        await mariadb.admin.query('DELETE FROM turngate_record');
      },
      open(url) {
        const pool = openMysql(url);
        const many = openMysql(url, { multipleStatements: true });
        return { pool, many, close: () => Promise.all([pool.end(), many.end()]) };
      },
    };
    return await overNetworks(first, mariadb, terms, context);
  },
};
