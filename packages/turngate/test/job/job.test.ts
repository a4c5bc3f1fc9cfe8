/** Jobs over several nodes on one database: one run per period, whatever happens to a node. */
import { startProxy } from '@turngate/test-servers';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { SqlDatabase } from '../../src/contract/sql-session.ts';
import {
  createJobRunner,
  defineJob,
  type JobContext,
  type JobDeclaration,
  type Period,
} from '../../src/job/index.ts';
import { JobStore } from '../../src/job/job-store.ts';
import { postgresDatabase } from '../../src/stores/postgres/index.ts';
import { until } from '../support/clock.ts';
import { createDatabase, createPool, type TestDatabase } from '../support/postgres.ts';

const period: Period = { label: '2026-11-29', dueMs: Date.UTC(2026, 10, 29) };

describe.skipIf(inject('postgresUrl') === '')('jobs', () => {
  let target: TestDatabase;
  let pool: pg.Pool;
  let database: SqlDatabase;
  let serial = 0;

  beforeAll(async () => {
    target = await createDatabase();
    pool = createPool(target.url);
    database = postgresDatabase(pool) as SqlDatabase;
  });
  afterAll(async () => {
    await pool.end();
    await target.drop();
  });

  const job = (run: JobDeclaration['run'], parts: Partial<JobDeclaration> = {}) =>
    defineJob({ name: `job-${++serial}`, schedule: { everyMs: 86_400_000 }, run, ...parts });

  it('runs once per period when twenty nodes fire together, and again next period', async () => {
    let runs = 0;
    const declared = job(async () => void runs++);
    const nodes = Array.from({ length: 20 }, () => createJobRunner(database, [declared]));
    const results = await Promise.all(nodes.map((node) => node.run(declared, period)));
    expect(results.filter((result) => result === 'ran')).toHaveLength(1);
    expect(results.filter((result) => result === 'taken')).toHaveLength(19);
    expect(await nodes[0]?.run(declared, period)).toBe('taken');
    expect(runs).toBe(1);
    const next = { label: '2026-11-30', dueMs: period.dueMs + 86_400_000 };
    expect(await nodes[1]?.run(declared, next)).toBe('ran');
  });

  it('lets a failed run run again, not before minHoldMs, and not for ever', async () => {
    let runs = 0;
    const failing = job(
      async () => {
        runs++;
        throw new Error('no luck');
      },
      { minHoldMs: 0, attemptsMax: 3 },
    );
    const node = createJobRunner(database, [failing]);
    for (let i = 0; i < 5; i++) await node.run(failing, period);
    expect(runs).toBe(3);
    const held = job(async () => Promise.reject(new Error('no luck')), { minHoldMs: 60_000 });
    expect(await node.run(held, period)).toBe('failed');
    expect(await node.run(held, period)).toBe('taken');
  });

  it('is taken over after the lease of a dead node, with a greater fence; the zombie is refused', async () => {
    const declared = job(async () => undefined, { leaseMs: 1_000 });
    const store = new JobStore(database);
    const dead = await store.claim(declared, period, 'dead');
    const fences: bigint[] = [];
    const taking = defineJob({
      name: declared.name,
      schedule: { everyMs: 86_400_000 },
      run: async ({ fence }) => void fences.push(fence),
    });
    const node = createJobRunner(database, [taking]);
    expect(await node.run(taking, period)).toBe('taken');
    await database.query('UPDATE turngate_job_run SET lease_until_ms = 1 WHERE job = $1', [
      declared.name,
    ]);
    expect(await node.run(taking, period)).toBe('ran');
    expect(fences[0]).toBeGreaterThan(dead?.fence as bigint);
    await expect(store.complete(dead as NonNullable<typeof dead>)).rejects.toMatchObject({
      code: 'LEASE_LOST',
    });
  });

  it('tells a running job by its signal that another node took it over', async () => {
    let seen: unknown;
    const slow = job(
      async ({ signal }: JobContext) => {
        await database.query("UPDATE turngate_job_run SET owner = 'other' WHERE job = $1", [
          slow.name,
        ]);
        await new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            seen = signal.reason;
            reject(signal.reason as Error);
          });
        });
      },
      { leaseMs: 1_000 },
    );
    const result = createJobRunner(database, [slow]).run(slow, period);
    expect(await result).toBe('lost');
    expect(seen).toMatchObject({ code: 'LEASE_LOST' });
  });

  it('tells a running job in time when the database falls silent', async () => {
    const proxy = await startProxy(target.url);
    const far = createPool(proxy.url);
    let told: unknown;
    const slow = job(
      async ({ signal }: JobContext) => {
        proxy.blackhole();
        await new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            told = signal.reason;
            reject(signal.reason as Error);
          });
        });
      },
      { leaseMs: 1_000 },
    );
    // Longer than the lease, or the store's own limit would do it.
    const silent = postgresDatabase(far, { answerLimitMs: 600_000 }) as SqlDatabase;
    const node = createJobRunner(silent, [slow]);
    const result = node.run(slow, period);
    try {
      await until('the job is told', () => told !== undefined);
      expect(told).toMatchObject({ code: 'LEASE_LOST' });
    } finally {
      void node.stop();
      proxy.heal();
    }
    expect(['lost', 'failed']).toContain(await result);
    await far.end();
    await proxy.stop();
  });

  it('commits effect and mark together, or neither', async () => {
    let attempt = 0;
    const declared = job(
      ({ completeIn }: JobContext) =>
        database.transaction(async (sql) => {
          await sql.query("INSERT INTO effect (line) VALUES ('job-effect')", []);
          await completeIn(sql);
          if (++attempt === 1) throw new Error('crash before commit');
        }),
      { minHoldMs: 0 },
    );
    const node = createJobRunner(database, [declared]);
    expect(await node.run(declared, period)).toBe('failed');
    expect(await node.run(declared, period)).toBe('ran');
    expect(await node.run(declared, period)).toBe('taken');
    expect(await target.lines('job-effect')).toHaveLength(1);
  });

  it.each([
    ['latest', 1],
    ['all', 4],
    ['skip', 0],
  ] as const)('makes up for missed periods by the policy "%s"', async (catchUp, expected) => {
    const periods: string[] = [];
    const declared = job(async (context) => void periods.push(context.period.label), {
      catchUp,
      graceMs: 1_000,
      schedule: { everyMs: 3_600_000 },
    });
    const node = createJobRunner(database, [declared]);
    await node.tick(); // First seen now: what was due before is nobody's.
    expect(periods).toEqual([]);
    await database.query(
      'UPDATE turngate_job SET since_ms = since_ms - 3600000 * 4 WHERE job = $1',
      [declared.name],
    );
    await node.tick();
    await node.tick();
    expect(periods).toHaveLength(expected);
    expect(periods).toEqual(periods.toSorted());
  });

  it('stops with its running jobs told and nothing left behind', async () => {
    let told = false;
    let begun!: () => void;
    const begins = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const declared = job(
      ({ signal }: JobContext) =>
        new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => {
            told = true;
            resolve();
          });
          begun();
        }),
      { schedule: { everyMs: 1_000 } },
    );
    const node = createJobRunner(database, [declared]);
    await new JobStore(database).clock(declared.name);
    await database.query('UPDATE turngate_job SET since_ms = 0 WHERE job = $1', [declared.name]);
    node.start(100);
    await begins;
    await node.stop();
    expect(told).toBe(true);
  });
});
