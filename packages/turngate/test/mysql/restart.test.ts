/** A server that is killed and comes back. */
import { startMariadb, type TestServer } from '@turngate/test-servers';
import { createPool, type Pool } from 'mysql2/promise';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGate } from '../../src/index.ts';
import { migrate, mysql, mysqlLocks } from '../../src/stores/mysql/index.ts';
import { until } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { describeWith } from '../support/servers.ts';

describeWith('mariadb', 'MariaDB killed with kill -9 and started again', () => {
  let server: TestServer;
  let pool: Pool;
  beforeAll(async () => {
    server = await startMariadb();
    const admin = createPool({ uri: server.url });
    await admin.query('CREATE DATABASE shop');
    await admin.end();
    pool = createPool({ uri: `${server.url}shop`, connectionLimit: 4 });
    await pool.query('CREATE TABLE effect (line VARCHAR(100) NOT NULL)');
    await migrate(pool);
  });
  afterAll(async () => {
    await pool?.end();
    await server?.stop();
  });

  it('under a handler: nothing is left, the key is free; records and fences survive', async () => {
    const gate = createGate({ records: mysql(pool), memoryCharsMax: 0 });
    const locks = mysqlLocks(pool);
    let crash = false;
    const pay = gate.operation({
      name: 'pay',
      key: (key: string) => key,
      async run(key, { tx }) {
        await tx.query('INSERT INTO effect VALUES (?)', [key]);
        if (crash) {
          await server.kill();
          await tx.query('SELECT 1');
        }
        return 'ok';
      },
    });
    await pay('before');
    const granted = await locks.tryAcquire({ name: 'n', owner: 'a', leaseMs: 60_000 });
    crash = true;
    await rejection(pay('during'), 'STORE_UNAVAILABLE');
    crash = false;
    await server.restart();
    await until('the server answers', () =>
      pool.query('SELECT 1').then(
        () => true,
        () => false,
      ),
    );
    expect((await pay('before')).replayed).toBe(true);
    expect((await pay('during')).replayed).toBe(false);
    const [rows] = await pool.query('SELECT line FROM effect ORDER BY line');
    expect(rows).toEqual([{ line: 'before' }, { line: 'during' }]);
    expect((await locks.tryAcquire({ name: 'n', owner: 'b', leaseMs: 1 })).kind).toBe('held');
    await locks.forceRelease?.('n');
    const next = await locks.tryAcquire({ name: 'n', owner: 'b', leaseMs: 60_000 });
    if (granted.kind !== 'granted' || next.kind !== 'granted') throw new Error('not granted');
    expect(next.fence).toBeGreaterThan(granted.fence);
  });
});
