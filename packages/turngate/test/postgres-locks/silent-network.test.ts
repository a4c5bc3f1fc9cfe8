import { startProxy } from '@turngate/test-servers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LockClient } from '../../src/lock/lock-client.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import { postgresLocks, postgresSessionLocks } from '../../src/stores/postgres/index.ts';
import { pause } from '../support/clock.ts';
import { createDatabase, createPool, type TestDatabase } from '../support/postgres.ts';
import { describeWith } from '../support/servers.ts';

describeWith('postgres', 'PostgreSQL locks on a silent network', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database?.drop());

  for (const mode of ['table', 'session'] as const) {
    it(`21: the handle is lost by its deadline (${mode} mode)`, async () => {
      const proxy = await startProxy(database.url);
      const pool = createPool(proxy.url);
      const session = postgresSessionLocks(pool);
      const store = mode === 'table' ? postgresLocks(pool) : session;
      const client = new LockClient(store, systemRuntime);
      const handle = await client.acquire(`silent ${mode}`, { leaseMs: 1_500 });
      await pause(600);
      proxy.blackhole();
      const cutMs = Date.now();
      await handle.lost;
      expect(handle.signal.aborted).toBe(true);
      expect(Date.now() - cutMs).toBeLessThanOrEqual(1_500 + 100);
      proxy.heal();
      await session.close();
      await pool.end();
      await proxy.stop();
    });
  }
});
