/** The laws of both contracts on MariaDB, over every kind of pool and isolation level. */
import type { Pool, PoolConnection, PoolOptions } from 'mysql2/promise';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { lockStoreSuite, recordStoreSuite } from '../../src/conformance/index.ts';
import type { LockStore } from '../../src/contract/index.ts';
import { mysql, mysqlLocks, mysqlSessionLocks } from '../../src/stores/mysql/index.ts';
import { pause } from '../support/clock.ts';
import { describeWith } from '../support/servers.ts';
import { createDatabase, ownTransaction, type TestDatabase, write } from './support.ts';

const readCommitted = 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED';
const foundRowsOff = ['-FOUND_ROWS'] as unknown as NonNullable<PoolOptions['flags']>;

const variants: { name: string; config: PoolOptions & { init?: string }; callback?: boolean }[] = [
  { name: 'REPEATABLE READ', config: {} },
  {
    name: 'READ COMMITTED, several statements per trip',
    config: { init: readCommitted, multipleStatements: true },
  },
  {
    name: 'REPEATABLE READ, several statements per trip, found rows off',
    config: { multipleStatements: true, flags: foundRowsOff },
  },
  {
    name: 'READ COMMITTED, found rows off, callback pool',
    config: { init: readCommitted, flags: foundRowsOff },
    callback: true,
  },
  {
    name: 'other settings of the client',
    config: {
      rowsAsArray: true,
      dateStrings: true,
      decimalNumbers: true,
      supportBigNumbers: true,
      timezone: '+09:00',
      charset: 'latin1',
      typeCast: () => 'not this',
      init: "SET time_zone = '-07:00', sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'",
    },
  },
];

for (const { name, config, callback } of variants) {
  describeWith('mariadb', name, () => {
    let database: TestDatabase;
    let pool: Pool;
    const client = () => (callback ? pool.pool : pool) as Pool;
    beforeAll(async () => {
      database = await createDatabase();
      pool = database.pool(config);
    });
    afterAll(() => database?.drop());
    recordStoreSuite<PoolConnection>(
      { describe, it },
      {
        name,
        open: async () => mysql(client()) as never,
        write,
        written: (prefix) => database.lines(prefix),
        ownTransaction: (body) => ownTransaction(pool, body),
        passTime: pause,
      },
    );
    const capabilities = { wakeup: 'poll', fairness: 'none', shares: false } as const;
    lockStoreSuite(
      { describe, it },
      { name, open: async () => mysqlLocks(client()), passTime: pause, capabilities },
    );
    let sessionLocks: LockStore | undefined;
    lockStoreSuite(
      { describe, it },
      {
        name: `${name}, GET_LOCK`,
        open: async () => (sessionLocks ??= mysqlSessionLocks(client())),
        passTime: pause,
        capabilities,
        lacks: ['pass', 'forceRelease'],
        // The pool keeps working: it drops what was idle and opens other connections.
        async endSession() {
          const [rows] = await database.admin.query(
            'SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()',
          );
          for (const { id } of rows as { id: number }[]) await database.admin.query(`KILL ${id}`);
        },
      },
    );
  });
}
