/** Locks in PostgreSQL between real processes. */
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createGate } from '../src/index.ts';
import { memory } from '../src/stores/memory/index.ts';
import { postgresLocks } from '../src/stores/postgres/index.ts';
import { type Child, startChild } from './support/child.ts';
import { until } from './support/clock.ts';
import { rejection } from './support/errors.ts';
import { PgProxy } from './support/pg-proxy.ts';
import { createDatabase, createPool, serverUrl, type TestDatabase } from './support/postgres.ts';

describe.skipIf(serverUrl === '')('locks in PostgreSQL', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let count = 0;
  let name = '';
  const children: Child[] = [];

  beforeAll(async () => {
    database = await createDatabase();
    pool = createPool(database.url);
    await pool.query(
      `CREATE TABLE counter (name text PRIMARY KEY, n int NOT NULL, fence bigint NOT NULL DEFAULT 0);
       CREATE TABLE fence_log (at serial PRIMARY KEY, name text, fence bigint, pid int)`,
    );
  });
  afterAll(async () => {
    await pool?.end();
    await database?.drop();
  });
  beforeEach(async () => {
    name = `lock ${++count}`;
    await pool.query('INSERT INTO counter (name, n) VALUES ($1, 0)', [name]);
  });
  afterEach(async () => {
    for (const child of children.splice(0)) {
      child.process.kill('SIGKILL');
      await child.ended;
    }
  });

  function start(mode: string, rounds = 0, leaseMs = 30_000): Child {
    const args = [database.url, name, String(rounds), String(leaseMs), mode];
    const child = startChild('lock-child.mjs', args);
    children.push(child);
    return child;
  }

  async function counter(): Promise<number> {
    const { rows } = await pool.query('SELECT n FROM counter WHERE name = $1', [name]);
    return rows[0].n as number;
  }

  async function expectGrowingFences(expected: number): Promise<void> {
    const { rows } = await pool.query<{ fence: string }>(
      'SELECT fence FROM fence_log WHERE name = $1 ORDER BY at',
      [name],
    );
    const fences = rows.map(({ fence }) => BigInt(fence));
    expect(fences).toHaveLength(expected);
    const outOfOrder = fences.filter((fence, i) => i > 0 && fence <= (fences[i - 1] as bigint));
    expect(outOfOrder).toEqual([]);
  }

  it('three processes lose no update of an unprotected counter, and fences grow', async () => {
    const workers = [1, 2, 3].map(() => start('work', 50));
    for (const worker of workers) expect(await worker.ended).toBe(0);
    expect(await counter()).toBe(150);
    await expectGrowingFences(150);
  });

  it('kill -9 of the holder lets the others in after its lease, nobody before', async () => {
    const holder = start('hang', 0, 1_000);
    await holder.said('holding');
    holder.process.kill('SIGKILL');
    const gate = createGate({ records: memory(), locks: postgresLocks(pool) });
    await rejection(gate.acquire(name, { waitMs: 0 }), 'BUSY');
    const worker = start('work', 5);
    expect(await worker.ended).toBe(0);
    expect(await counter()).toBe(5);
  });

  it('a holder frozen past its lease knows it when it wakes, and its fence is too old to write', async () => {
    const holder = start('stall', 0, 500);
    await holder.said('holding');
    holder.process.kill('SIGSTOP');
    const gate = createGate({ records: memory(), locks: postgresLocks(pool) });
    const lock = await gate.acquire(name, { waitMs: 10_000 });
    await pool.query('UPDATE counter SET n = 7, fence = $2 WHERE name = $1', [
      name,
      String(lock.fence),
    ]);
    holder.process.kill('SIGCONT');
    await until('it has woken', () => holder.lines.some((line) => line.startsWith('woken')));
    expect(holder.lines).toContain('woken held=false aborted=true');
    holder.process.kill('SIGUSR2');
    await holder.said('late write 0');
    expect(await counter()).toBe(7);
    expect(lock.isHeld()).toBe(true);
    await lock.release();
  });

  it('renewal keeps a short lease while the work lasts, with nothing held in the pool', async () => {
    const gate = createGate({ records: memory(), locks: postgresLocks(pool) });
    const held = await gate.acquire(name, { leaseMs: 500 });
    const endMs = performance.now() + 1_500;
    await until('1.5 seconds have passed', async () => {
      held.assertHeld();
      return performance.now() > endMs;
    });
    // A renewal may be under way at this very moment; between two of them nothing is held.
    await expect.poll(() => pool.totalCount - pool.idleCount, { interval: 5 }).toBe(0);
    expect((await gate.inspectLock(name))?.fence).toBe(held.fence);
    expect(await held.release()).toBe('released');
  });

  it('a server that falls silent: lost at the local deadline; back again: taken anew', async () => {
    const proxy = await PgProxy.start(database.url);
    // A pool of its own accord waits for ever for a connection that never comes up.
    const far = createPool(proxy.url, { max: 1, connectionTimeoutMillis: 500 });
    const gate = createGate({
      records: memory(),
      locks: postgresLocks(far, { answerLimitMs: 700 }),
    });
    const held = await gate.acquire(name, { leaseMs: 2_000 });
    const { signal } = held;
    proxy.muted = true;
    const startMs = performance.now();
    await until('it is lost', () => signal.aborted);
    expect(performance.now() - startMs).toBeLessThan(2_150);
    await rejection(gate.acquire(`${name} other`, { waitMs: 0 }), 'STORE_UNAVAILABLE');
    proxy.muted = false;
    await until('it can be taken again', async () => {
      try {
        await (await gate.acquire(name, { waitMs: 0 })).release();
        return true;
      } catch {
        return false;
      }
    });
    await proxy.stop();
    await far.end();
  });

  it('200 flows of one process take turns', async () => {
    const gate = createGate({ records: memory(), locks: postgresLocks(pool) });
    let inside = 0;
    let n = 0;
    const flows = Array.from({ length: 200 }, () =>
      gate.lock(name, { waitMs: 20_000 }, async () => {
        if (++inside !== 1) throw new Error('two holders');
        n++;
        inside--;
      }),
    );
    await Promise.all(flows);
    expect(n).toBe(200);
  });
});
