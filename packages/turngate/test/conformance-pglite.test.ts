import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { lockStoreSuite, recordStoreSuite } from '../src/conformance/index.ts';
import { migrate, postgres, postgresLocks } from '../src/stores/postgres/index.ts';
import { pause } from './support/clock.ts';
import { effectTable, insertEffect, selectEffects } from './support/postgres.ts';

describe('PGlite', () => {
  let db: PGlite;
  beforeAll(async () => {
    db = new PGlite();
    await db.query(effectTable);
    await migrate(db);
  });
  afterAll(() => db.close());
  recordStoreSuite(
    { describe, it },
    {
      name: 'PGlite',
      open: async () => postgres(db),
      write: async (tx, line) => void (await tx.query(insertEffect, [line])),
      written: async (prefix) => {
        const { rows } = await db.query<{ line: string }>(selectEffects, [prefix]);
        return rows.map(({ line }) => line);
      },
      ownTransaction: (body) => db.transaction(body),
      passTime: pause,
      oneSession: 'PGlite has one session, transactions queue',
    },
  );
  lockStoreSuite(
    { describe, it },
    {
      name: 'PGlite',
      open: async () => postgresLocks(db),
      passTime: pause,
      capabilities: { wakeup: 'poll', fairness: 'none', shares: false },
    },
  );
});
