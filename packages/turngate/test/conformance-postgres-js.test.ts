import postgresJs from 'postgres';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { lockStoreSuite, recordStoreSuite } from '../src/conformance/index.ts';
import { postgres, postgresLocks } from '../src/stores/postgres/index.ts';
import { pause } from './support/clock.ts';
import { createDatabase, insertEffect, serverUrl, type TestDatabase } from './support/postgres.ts';

for (const options of [{}, { prepare: false }]) {
  const name = `postgres.js ${JSON.stringify(options)}`;
  describe.skipIf(serverUrl === '')(name, () => {
    let database: TestDatabase;
    let sql: postgresJs.Sql;
    beforeAll(async () => {
      database = await createDatabase();
      sql = postgresJs(database.url, { max: 10, onnotice: () => {}, ...options });
    });
    afterAll(async () => {
      await sql?.end({ timeout: 2 });
      await database?.drop();
    });
    recordStoreSuite(
      { describe, it },
      {
        name,
        open: async () => postgres(sql, options),
        write: async (tx, line) => void (await tx.unsafe(insertEffect, [line])),
        written: (prefix) => database.lines(prefix),
        ownTransaction: async <T>(body: (tx: postgresJs.TransactionSql) => Promise<T>) =>
          (await sql.begin(body)) as T,
        passTime: pause,
        endedUnseen: 'postgres.js lets an ended transaction handle talk on its connection',
      },
    );
    lockStoreSuite(
      { describe, it },
      {
        name,
        open: async () => postgresLocks(sql, options),
        passTime: pause,
        capabilities: { wakeup: 'poll', fairness: 'none', shares: false },
      },
    );
  });
}
