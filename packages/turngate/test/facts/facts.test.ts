/** Failures that other idempotency libraries had, as laws. Numbers: docs/idempotency-experiments.md. */
import { startRedis } from '@turngate/test-servers';
import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import { createGate, isUniqueViolation } from '../../src/index.ts';
import { memory } from '../../src/stores/memory/index.ts';
import { mysql } from '../../src/stores/mysql/index.ts';
import { postgres } from '../../src/stores/postgres/index.ts';
import { redisRecords } from '../../src/stores/redis/index.ts';
import { createDatabase as createMariadb } from '../mysql/support.ts';
import { endAfter, freshPrefix, ioredis } from '../redis/support.ts';
import { door, ManualRuntime, turn } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { createDatabase, createPool, insertEffect } from '../support/postgres.ts';
import { describeWith } from '../support/servers.ts';

describe('keys that are none', () => {
  it('L3: a selection of nothing is a missing or wrong key, never one key for all', async () => {
    const gate = createGate({ records: memory() });
    let runs = 0;
    const pay = gate.operation({
      name: 'pay',
      key: (input: { key: unknown }) => input.key as string,
      run: () => ++runs,
    });
    for (const key of [undefined, null, '', [null, null], { a: null }, Number.NaN, false]) {
      const error = (await pay({ key }).catch((thrown: unknown) => thrown)) as { code?: string };
      expect(error.code, JSON.stringify(key)).toMatch(/^IDEMPOTENCY_KEY_(MISSING|INVALID)$/);
    }
    expect(runs).toBe(0);
    await pay({ key: '0' });
    await pay({ key: 'false' });
    expect(runs).toBe(2);
  });
});

describeWith('postgres', 'PostgreSQL', () => {
  it('L51: what is retried is told by the code, in whatever language the server speaks', async () => {
    const { url, lines, drop } = await createDatabase();
    const pool = createPool(url);
    endAfter(drop);
    endAfter(() => pool.end());
    const tries: Record<string, number> = {};
    const gate = createGate({ records: postgres(pool) });
    const pay = gate.operation({
      name: 'pay',
      key: ({ key }: { key: string; raise: string }) => key,
      async run({ key, raise }, { tx }) {
        tries[key] = (tries[key] ?? 0) + 1;
        await tx.query(insertEffect, [key]);
        if (tries[key] === 1) await tx.query(`DO $$ BEGIN RAISE ${raise}; END $$`);
      },
    });
    const german = "'kann Zugriff nicht serialisieren' USING ERRCODE = '40001'";
    const lookalike = "'deadlock detected, could not serialize access' USING ERRCODE = 'P0001'";
    await pay({ key: 'german', raise: german });
    await expect(pay({ key: 'lookalike', raise: lookalike })).rejects.toMatchObject({
      code: 'P0001',
    });
    expect(tries).toEqual({ german: 2, lookalike: 1 });
    expect(await lines('')).toEqual(['german']);
    await gate.close();
  });
});

describeWith('mariadb', 'MariaDB', () => {
  it('L51: the same by errno', async () => {
    const database = await createMariadb();
    endAfter(() => database.drop());
    const tries: Record<string, number> = {};
    const gate = createGate({ records: mysql(database.pool()) });
    const pay = gate.operation({
      name: 'pay',
      key: ({ key }: { key: string; signal: string }) => key,
      async run({ key, signal }, { tx }) {
        tries[key] = (tries[key] ?? 0) + 1;
        await tx.query('INSERT INTO effect (line) VALUES (?)', [key]);
        if (tries[key] === 1) await tx.query(`SIGNAL SQLSTATE ${signal}`);
      },
    });
    const german = "'40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Verklemmung'";
    const lookalike = "'45000' SET MYSQL_ERRNO = 5000, MESSAGE_TEXT = 'Deadlock found'";
    await pay({ key: 'german', signal: german });
    await expect(pay({ key: 'lookalike', signal: lookalike })).rejects.toMatchObject({
      errno: 5000,
    });
    expect(tries).toEqual({ german: 2, lookalike: 1 });
    expect(await database.lines('')).toEqual(['german']);
    await gate.close();
  });
});

describeWith(['redis', 'postgres'], 'a Redis that evicts', () => {
  it('L65: the record is thrown away, the work runs again, the guard in the database holds', async () => {
    const server = await startRedis();
    endAfter(() => server.stop());
    const client = ioredis(server.url);
    await client.config('SET', 'maxmemory-policy', 'volatile-lru');
    const { url, lines, drop } = await createDatabase();
    endAfter(drop);
    const pool: pg.Pool = createPool(url);
    endAfter(() => pool.end());
    await pool.query('CREATE UNIQUE INDEX paid_once ON effect (line)');
    const gate = createGate({
      records: redisRecords(client, { prefix: freshPrefix() }),
      memoryCharsMax: 0,
    });
    let runs = 0;
    const pay = gate.operation({
      name: 'pay',
      key: (key: string) => key,
      async run(key: string) {
        runs++;
        const seen = await pool.query(insertEffect, [key]).then(
          () => false,
          (error: unknown) => {
            if (!isUniqueViolation(error, 'paid_once')) throw error;
            return true;
          },
        );
        return { paid: key, seen };
      },
    });
    expect((await pay('a')).value).toEqual({ paid: 'a', seen: false });
    await fillUntilEvicted(client);
    const again = await pay('a').catch((error: unknown) => error);
    expect(runs).toBe(2); // The record is gone: at least once, as the guide says.
    expect(again).toMatchObject({ replayed: false, value: { paid: 'a', seen: true } });
    expect(await lines('')).toEqual(['a']);
    await gate.close();
  });

  /** The only keys with a lifetime are the records, so they go first. */
  async function fillUntilEvicted(client: ReturnType<typeof ioredis>): Promise<void> {
    const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    await client.config('SET', 'maxmemory', String(used + 200_000));
    for (let i = 0; i < 200; i++) {
      await client.set(`filler:${i}`, 'x'.repeat(10_000)).catch(() => undefined);
      if (/evicted_keys:[1-9]/.test(await client.info('stats'))) break;
    }
    await client.config('SET', 'maxmemory', '0');
  }
});

describe('a caller that is told to come back', () => {
  it('L57: the longer the first has run, the later; never at once', async () => {
    const runtime = new ManualRuntime();
    const gate = createGate({ records: memory({ runtime }), runtime });
    const held = door();
    const pay = gate.operation({
      name: 'pay',
      key: (key: string) => key,
      inFlight: 'reject',
      run: () => held.opened,
    });
    const first = pay('a');
    await turn();
    const toComeBack = async (): Promise<unknown> =>
      (await rejection(pay('a'), 'REQUEST_IN_PROGRESS'))['retryAfterMs'];
    expect(await toComeBack()).toBe(1_000);
    await runtime.advance(6_500);
    expect(await toComeBack()).toBe(7_000);
    await runtime.advance(600_000);
    expect(await toComeBack()).toBe(30_000);
    held.open();
    await first;
  });
});
