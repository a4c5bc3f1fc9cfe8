import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LockClient } from '../../src/lock/lock-client.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import type { PgPoolLike, PostgresSessionClient } from '../../src/stores/postgres/index.ts';
import {
  type PostgresSessionLockStore,
  postgresLocks,
  postgresSessionLocks,
} from '../../src/stores/postgres/index.ts';
import { startChild } from '../support/child.ts';
import { until } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { createDatabase, createPool, type TestDatabase } from '../support/postgres.ts';
import { describeWith } from '../support/servers.ts';
import { SwappingPool } from '../support/swapping-pool.ts';

const attempt = (name: string, owner = systemRuntime.randomId(), leaseMs = 30_000) => ({
  name,
  owner,
  leaseMs,
});

describeWith('postgres', 'PostgreSQL session locks', () => {
  let database: TestDatabase;
  const ends: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
    await database?.drop();
  });

  function sessionStore(config: pg.PoolConfig = {}): PostgresSessionLockStore & { pool: pg.Pool } {
    const pool = createPool(database.url, { max: 3, ...config });
    const store = postgresSessionLocks(pool);
    ends.push(
      () => pool.end(),
      () => store.close(),
    );
    return Object.assign(store, { pool });
  }

  const advisoryLocks = async (): Promise<number> => {
    const { rows } = await database.admin.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory'
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    );
    return rows[0]?.n as number;
  };

  /** Ends the backend that took an advisory lock last. */
  const endHolder = async (): Promise<void> => {
    const { rows } = await database.admin.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock%'
       AND pid <> pg_backend_pid() AND datname = current_database()
       ORDER BY query_start DESC LIMIT 1`,
    );
    await database.admin.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
  };

  it('two processes exclude each other, and the next fence is greater', async () => {
    const [a, b] = [sessionStore(), sessionStore()];
    const [first, second] = [attempt('pair'), attempt('pair')];
    const one = await a.tryAcquire(first);
    expect(await b.tryAcquire(second)).toMatchObject({ kind: 'held' });
    expect(await b.release(second)).toBe('taken');
    expect(await a.release(first)).toBe('ours');
    const two = await b.tryAcquire(second);
    if (one.kind !== 'granted' || two.kind !== 'granted') throw new Error('not granted');
    expect(two.fence > one.fence).toBe(true);
    await b.release(second);
  });

  it('two local attempts on one session do not both win, though PostgreSQL would let them', async () => {
    const store = sessionStore();
    const grants = await Promise.all(
      Array.from({ length: 20 }, () => store.tryAcquire(attempt('reentrant'))),
    );
    expect(grants.filter(({ kind }) => kind === 'granted')).toHaveLength(1);
  });

  it('the end of the connection is told at once, renewals answer expired, others get in', async () => {
    const [store, other] = [sessionStore(), sessionStore()];
    await store.close();
    const held = attempt('cut');
    const losses: string[] = [];
    store.onLoss(({ owner }) => losses.push(owner));
    const others = await advisoryLocks();
    await store.tryAcquire(held);
    expect(await advisoryLocks()).toBe(others + 1);
    await endHolder();
    await until('the loss is told', () => losses.includes(held.owner));
    expect(await store.renew([held])).toEqual(['expired']);
    const next = attempt('cut');
    expect(await other.tryAcquire(next)).toMatchObject({ kind: 'granted' });
    expect(await store.release(held)).toBe('taken');
    await other.release(next);
  });

  it('the end of the connection reaches the handle before any renewal', async () => {
    const store = sessionStore();
    const client = new LockClient(store, systemRuntime);
    const renewals: number[] = [];
    const renew = store.renew.bind(store);
    store.renew = (attempts) => {
      renewals.push(attempts.length);
      return renew(attempts);
    };
    const handle = await client.acquire('ended', { leaseMs: 30_000 });
    const { signal } = handle;
    await endHolder();
    await until('the signal is aborted', () => signal.aborted);
    expect(renewals).toEqual([]);
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST' });
    expect(String(signal.reason)).toContain('session-ended');
    expect(client.heldCount).toBe(0);
    expect(await handle.release()).toBe('expired');
    const next = await client.acquire('ended', { waitMs: 5_000 });
    expect(next.fence > handle.fence).toBe(true);
    await next.release();
  });

  it('81: a pooler in transaction mode is refused at the first lock, with the advice to use table mode, which works there', async () => {
    const pool = await SwappingPool.start(database.url);
    ends.push(() => pool.end());
    const before = await advisoryLocks();
    const store = postgresSessionLocks(pool as unknown as PostgresSessionClient);
    const error = await rejection(store.tryAcquire(attempt('pooled')), 'OPTION_INVALID');
    expect(error.message).toMatch(/postgresLocks \(table mode\)/);
    expect(await advisoryLocks()).toBe(before);
    const table = postgresLocks(pool as unknown as PgPoolLike, { prepare: false });
    const held = attempt('pooled');
    expect(await table.tryAcquire(held)).toMatchObject({ kind: 'granted' });
    expect(await table.release(held)).toBe('ours');
  });

  it('81: a pooler that begins to swap later is found by the next statement, and no lock is taken elsewhere', async () => {
    const pool = await SwappingPool.start(database.url);
    ends.push(() => pool.end());
    const before = await advisoryLocks();
    pool.mode = 'session';
    const store = postgresSessionLocks(pool as unknown as PostgresSessionClient);
    const held = attempt('later');
    const losses: string[] = [];
    store.onLoss(({ owner }) => losses.push(owner));
    expect(await store.tryAcquire(held)).toMatchObject({ kind: 'granted' });
    pool.mode = 'transaction';
    const settled = await Promise.allSettled(
      Array.from({ length: 6 }, (_, i) => store.tryAcquire(attempt(`later ${i}`))),
    );
    expect(settled.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0);
    expect(losses).toContain(held.owner);
    expect(await store.renew([held])).toEqual(['expired']);
    expect(await advisoryLocks()).toBeLessThanOrEqual(before + 1);
  });

  it('85: a pool of one connection is refused at once; with two, work under the lock runs', async () => {
    const one = createPool(database.url, { max: 1 });
    ends.push(() => one.end());
    expect(() => postgresSessionLocks(one)).toThrow(/at least 2 connections/);
    const store = sessionStore({ max: 2 });
    const client = new LockClient(store, systemRuntime);
    const value = await client.run('two', {}, async () => {
      const { rows } = await store.pool.query<{ one: number }>('SELECT 1 AS one');
      return rows[0]?.one;
    });
    expect(value).toBe(1);
  });

  it('85: table mode works with a pool of one connection, query under the lock included', async () => {
    const pool = createPool(database.url, { max: 1 });
    ends.push(() => pool.end());
    const client = new LockClient(postgresLocks(pool), systemRuntime);
    const value = await client.run('one', {}, async () => {
      const { rows } = await pool.query<{ one: number }>('SELECT 1 AS one');
      return rows[0]?.one;
    });
    expect(value).toBe(1);
  });

  it('an idle store gives its connection back, so that the pool can end', async () => {
    const pool = createPool(database.url, { max: 3 });
    const store = postgresSessionLocks(pool);
    const held = attempt('idle');
    await store.tryAcquire(held);
    await store.release(held);
    await pool.end();
    expect(pool.totalCount).toBe(0);
  });

  it('a statement that failed after the lock was taken leaves nothing held', async () => {
    const store = sessionStore({ statement_timeout: 200 });
    const before = await advisoryLocks();
    const blocker = await database.admin.connect();
    try {
      await blocker.query('BEGIN');
      // nextval waits for this, while the advisory lock has already been taken.
      await blocker.query('ALTER SEQUENCE turngate_lock_fence RESTART');
      await rejection(store.tryAcquire(attempt('late')), 'STORE_UNAVAILABLE');
      expect(await advisoryLocks()).toBe(before);
    } finally {
      await blocker.query('ROLLBACK');
      blocker.release();
    }
    expect(await store.tryAcquire(attempt('late'))).toMatchObject({ kind: 'granted' });
  });

  for (const mode of ['session', 'table'] as const) {
    it(`83: 500 waits that end as the lock is released are never failed but held (${mode} mode)`, async () => {
      const [a, b] =
        mode === 'session'
          ? [sessionStore(), sessionStore()]
          : [postgresLocks(sessionStore().pool), postgresLocks(sessionStore().pool)];
      const holder = new LockClient(a, systemRuntime);
      const waiter = new LockClient(b, systemRuntime);
      const outcomes = { granted: 0, busy: 0 };
      for (let i = 0; i < 500; i++) {
        const name = `race ${i % 5}`;
        const held = await holder.acquire(name, { waitMs: 1_000 });
        const waitMs = 3 + (i % 20);
        const waiting = waiter.acquire(name, { waitMs }).then(
          async (handle) => {
            expect(handle.isHeld()).toBe(true);
            expect(await handle.release()).toBe('released');
            return 'granted' as const;
          },
          () => 'busy' as const,
        );
        await new Promise((resolve) => setTimeout(resolve, (waitMs * (i % 13)) / 12));
        await held.release();
        outcomes[await waiting]++;
        await until('nobody holds it', async () => (await a.inspect(name)) === undefined, 2_000);
      }
      expect(outcomes.granted + outcomes.busy).toBe(500);
      expect(outcomes.granted).toBeGreaterThan(0);
      expect(outcomes.busy).toBeGreaterThan(0);
    });
  }
});

describeWith('postgres', 'a process that locked once on PostgreSQL', () => {
  for (const mode of ['table', 'session']) {
    it(`ends when its pool ends, without waiting for any timer (${mode} mode)`, async () => {
      const database = await createDatabase();
      const child = startChild('lock-exit-postgres-child.mjs', [database.url, mode]);
      await child.said('done');
      const doneMs = performance.now();
      expect(await child.ended).toBe(0);
      expect(performance.now() - doneMs).toBeLessThan(1_000);
      await database.drop();
    });
  }
});
