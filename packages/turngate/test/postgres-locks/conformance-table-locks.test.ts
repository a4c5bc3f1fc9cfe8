import type pg from 'pg';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { lockStoreSuite } from '../../src/conformance/index.ts';
import { postgresLocks } from '../../src/stores/postgres/index.ts';
import { pause } from '../support/clock.ts';
import { createDatabase, createPool, type TestDatabase } from '../support/postgres.ts';
import { describeWith } from '../support/servers.ts';

describeWith('postgres', 'PostgreSQL table mode', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await createDatabase();
    pool = createPool(database.url);
  });
  afterAll(async () => {
    await pool?.end();
    await database?.drop();
  });
  lockStoreSuite(
    { describe, it },
    {
      name: 'postgres table',
      open: async () => postgresLocks(pool),
      passTime: pause,
      capabilities: { wakeup: 'poll', fairness: 'none', shares: false },
    },
  );
});
