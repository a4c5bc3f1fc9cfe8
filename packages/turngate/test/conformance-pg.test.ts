import type pg from 'pg';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { lockStoreSuite, recordStoreSuite } from '../src/conformance/index.ts';
import { type PostgresOptions, postgres, postgresLocks } from '../src/stores/postgres/index.ts';
import { pause } from './support/clock.ts';
import {
  createDatabase,
  createPool,
  insertEffect,
  pgTransaction,
  serverUrl,
  type TestDatabase,
} from './support/postgres.ts';

const variants: { name: string; config: pg.PoolConfig; options: PostgresOptions }[] = [
  { name: 'pg', config: {}, options: {} },
  { name: 'pg with pipeline: true', config: { pipeline: true } as pg.PoolConfig, options: {} },
  { name: 'pg with prepare: false', config: {}, options: { prepare: false } },
];

for (const { name, config, options } of variants) {
  describe.skipIf(serverUrl === '')(name, () => {
    let database: TestDatabase;
    let pool: pg.Pool;
    beforeAll(async () => {
      database = await createDatabase();
      pool = createPool(database.url, config);
    });
    afterAll(async () => {
      await pool?.end();
      await database?.drop();
    });
    recordStoreSuite(
      { describe, it },
      {
        name,
        open: async () => postgres(pool, options),
        write: async (tx, line) => void (await tx.query(insertEffect, [line])),
        written: (prefix) => database.lines(prefix),
        ownTransaction: (body) => pgTransaction(pool, body),
        passTime: pause,
      },
    );
    lockStoreSuite(
      { describe, it },
      {
        name,
        open: async () => postgresLocks(pool, options),
        passTime: pause,
        capabilities: { wakeup: 'poll', fairness: 'none', shares: false },
      },
    );
  });
}
