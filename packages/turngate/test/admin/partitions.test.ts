/** The documented partitions: the recipe of docs/guide-admin.md, as it stands there. */
import { readFileSync } from 'node:fs';
import { afterAll, describe, it } from 'vitest';
import { recordStoreSuite } from '../../src/conformance/index.ts';
import { postgres } from '../../src/stores/postgres/index.ts';
import { pause } from '../support/clock.ts';
import {
  createDatabase,
  createPool,
  insertEffect,
  pgTransaction,
  serverUrl,
} from '../support/postgres.ts';

const guide = readFileSync(new URL('../../../../docs/guide-admin.md', import.meta.url), 'utf8');
const recipe = /```sql\n([\s\S]*?)```/.exec(guide)?.[1] as string;

describe.skipIf(serverUrl === '')('records in hash partitions', async () => {
  const database = serverUrl === '' ? undefined : await createDatabase();
  if (database === undefined) return;
  await database.admin.query(recipe);
  const pool = createPool(database.url);
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });
  recordStoreSuite(
    { describe, it },
    {
      name: 'hash partitions',
      open: async () => postgres(pool),
      write: async (tx, line) => void (await tx.query(insertEffect, [line])),
      written: (prefix) => database.lines(prefix),
      ownTransaction: (body) => pgTransaction(pool, body),
      passTime: pause,
    },
  );
});
