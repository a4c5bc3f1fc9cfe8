import postgresJs from 'postgres';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { lockStoreSuite } from '../../src/conformance/index.ts';
import {
  type PostgresSessionClient,
  type PostgresSessionLockStore,
  postgresSessionLocks,
} from '../../src/stores/postgres/index.ts';
import { pause } from '../support/clock.ts';
import { createDatabase, createPool, type TestDatabase } from '../support/postgres.ts';
import { describeWith } from '../support/servers.ts';

const clients: Record<
  string,
  (url: string) => PostgresSessionClient & { end(): Promise<unknown> }
> = {
  pg: (url) => createPool(url, { max: 3 }),
  'postgres.js': (url) => postgresJs(url, { max: 3, onnotice: () => {} }),
};

describeWith('postgres', 'PostgreSQL session mode', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database?.drop());

  for (const [name, make] of Object.entries(clients)) {
    describe(name, () => {
      let client: ReturnType<typeof make>;
      let store: PostgresSessionLockStore;
      beforeAll(() => {
        client = make(database.url);
        store = postgresSessionLocks(client);
      });
      afterAll(async () => {
        await store?.close();
        await client?.end();
      });
      lockStoreSuite(
        { describe, it },
        {
          name: `postgres session over ${name}`,
          open: async () => store,
          passTime: pause,
          capabilities: { wakeup: 'poll', fairness: 'none', shares: false, fenceBlocks: false },
          lacks: ['pass', 'forceRelease'],
          // The law has taken the only lock of this session: its backend ran the last such statement.
          async endSession() {
            const { rows } = await database.admin.query<{ pid: number }>(
              `SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock%'
               AND pid <> pg_backend_pid() AND datname = current_database()
               ORDER BY query_start DESC LIMIT 1`,
            );
            await database.admin.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
          },
          notApplicable:
            name === 'pg'
              ? {}
              : {
                  'a grant whose session ends is told at once, and the next fence is greater':
                    'postgres.js tells the end of a connection only by the next statement',
                },
        },
      );
    });
  }
});
