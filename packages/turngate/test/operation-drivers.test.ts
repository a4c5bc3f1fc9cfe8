/** The same trouble on every PostgreSQL client. */
import { PGlite } from '@electric-sql/pglite';
import type pg from 'pg';
import postgresJs from 'postgres';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createGate, type Gate, isTurngateError } from '../src/index.ts';
import { migrate, postgres, postgresSession } from '../src/stores/postgres/index.ts';
import { door, until } from './support/clock.ts';
import { rejection } from './support/errors.ts';
import { PgProxy } from './support/pg-proxy.ts';
import {
  createDatabase,
  createPool,
  effectTable,
  insertEffect,
  selectEffects,
  serverUrl,
  type TestDatabase,
} from './support/postgres.ts';

interface Opened {
  readonly gate: Gate<unknown>;
  end(): Promise<unknown>;
}
type Open = (url: string, max?: number) => Opened;
interface Pay {
  readonly key: string;
}

const options = { answerLimitMs: 1_500 };
const gateOver = (records: unknown): Gate<unknown> =>
  createGate({ records: records as never, memoryCharsMax: 0 });

const openPg =
  (config: object): Open =>
  (url, max = 4) => {
    const pool = createPool(url, { max, ...config } as pg.PoolConfig);
    return { gate: gateOver(postgres(pool, options)), end: () => pool.end() };
  };
const clients: Record<string, Open> = {
  pg: openPg({}),
  'pg with pipeline: true': openPg({ pipeline: true }),
  'postgres.js': (url, max = 4) => {
    const sql = postgresJs(url, { max, onnotice: () => {}, connect_timeout: 1, backoff: () => 0 });
    return { gate: gateOver(postgres(sql, options)), end: () => sql.end({ timeout: 1 }) };
  },
};

const statement = async (tx: unknown, text: string, values: string[] = []): Promise<unknown[]> => [
  ...(await postgresSession(tx).query(text, values)).rows,
];

for (const [name, open] of Object.entries(clients)) {
  describe.skipIf(serverUrl === '')(`operations with ${name}`, () => {
    let database: TestDatabase;
    let opened: Opened[] = [];
    let count = 0;
    let key = '';
    beforeAll(async () => {
      database = await createDatabase();
    });
    afterAll(() => database?.drop());
    beforeEach(() => {
      key = `k${++count}.`;
    });
    afterEach(async () => {
      await Promise.all(opened.map(({ end }) => end()));
      opened = [];
    });

    function gate(url = database.url, max?: number): Gate<unknown> {
      const one = open(url, max);
      opened.push(one);
      return one.gate;
    }
    const declare = (after: (tx: unknown) => Promise<unknown> = async () => 'ok') => ({
      name: 'pay',
      key: (input: Pay) => input.key,
      run: async (input: Pay, { tx }: { tx: unknown }) => {
        await statement(tx, insertEffect, [input.key]);
        return await after(tx);
      },
    });
    const pid = async (tx: unknown): Promise<number> => {
      const [row] = await statement(tx, 'SELECT pg_backend_pid() AS pid');
      return (row as { pid: number }).pid;
    };

    it('one connection serves 30 equal and 30 different calls', async () => {
      const pay = gate(database.url, 1).operation(declare());
      const calls = Array.from({ length: 30 }, (_, i) => [pay({ key }), pay({ key: key + i })]);
      await Promise.all(calls.flat());
      expect(await database.lines(key)).toHaveLength(31);
    });

    it('two gates compete for one key: one effect', async () => {
      const pays = [gate(), gate()].map((one) => one.operation(declare()));
      const outcomes = await Promise.all(
        Array.from({ length: 30 }, (_, i) => pays[i % 2]!({ key })),
      );
      expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1);
      expect(await database.lines(key)).toEqual([key]);
    });

    it('a swallowed failure of a statement is TRANSACTION_ROLLED_BACK', async () => {
      const pay = gate().operation(
        declare(async (tx) => {
          await statement(tx, 'SELECT 1/0').catch(() => undefined);
          return 'ok';
        }),
      );
      await rejection(pay({ key }), 'TRANSACTION_ROLLED_BACK');
      expect(await database.lines(key)).toEqual([]);
    });

    it('an error of the handler rolls back, and the connection is used again', async () => {
      let fail = true;
      const pay = gate(database.url, 1).operation(
        declare(async () => {
          if (fail) throw new TypeError('boom');
          return 'ok';
        }),
      );
      await expect(pay({ key })).rejects.toThrow(TypeError);
      fail = false;
      expect((await pay({ key })).replayed).toBe(false);
      expect(await database.lines(key)).toEqual([key]);
    });

    it('a killed backend is STORE_UNAVAILABLE and frees the key', async () => {
      let kill = true;
      const pay = gate().operation(
        declare(async (tx) => {
          const backend = await pid(tx);
          if (kill) await database.admin.query('SELECT pg_terminate_backend($1)', [backend]);
          await statement(tx, 'SELECT 1');
          return 'ok';
        }),
      );
      const error = await rejection(pay({ key }), 'STORE_UNAVAILABLE');
      expect(error['outcome']).toBe('not-applied');
      kill = false;
      // postgres.js may hand out the dead connection once more before it opens a new one.
      await until('a retry has run', async () => {
        const retry = await pay({ key }).catch((again: unknown) => again);
        if (isTurngateError(retry, 'STORE_UNAVAILABLE')) return false;
        expect(retry).toMatchObject({ value: 'ok', replayed: false });
        return true;
      });
      expect(await database.lines(key)).toEqual([key]);
    });

    it('a lost answer to COMMIT is settled by reading, one run', async () => {
      const proxy = await PgProxy.start(database.url);
      let runs = 0;
      const pay = gate(proxy.url).operation(
        declare(async () => {
          runs++;
          proxy.fate = 'commit-then-cut';
          return 'ok';
        }),
      );
      expect(await pay({ key })).toMatchObject({ value: 'ok', replayed: false });
      expect([runs, proxy.cuts]).toEqual([1, 1]);
      expect(await database.lines(key)).toEqual([key]);
      await proxy.stop();
    });

    it('a COMMIT that never arrived is told as not applied, one run', async () => {
      const proxy = await PgProxy.start(database.url);
      let runs = 0;
      const pay = gate(proxy.url).operation(
        declare(async () => {
          if (++runs === 1) proxy.fate = 'cut-before-commit';
          return 'ok';
        }),
      );
      const error = await rejection(pay({ key }), 'STORE_UNAVAILABLE');
      expect(error['outcome']).toBe('not-applied');
      expect(await database.lines(key)).toEqual([]);
      expect((await pay({ key })).replayed).toBe(false);
      expect(runs).toBe(2);
      await proxy.stop();
    });

    it('no server is STORE_UNAVAILABLE within the limit', async () => {
      const proxy = await PgProxy.start(database.url);
      await proxy.stop();
      const pay = gate(proxy.url).operation(declare());
      const startMs = Date.now();
      await rejection(pay({ key }), 'STORE_UNAVAILABLE');
      expect(Date.now() - startMs).toBeLessThan(4_000);
    });

    it('another payload is told while the first runs elsewhere', async () => {
      const started = door();
      const held = door();
      const first = gate().operation(
        declare(async () => {
          started.open();
          await held.opened;
        }),
      );
      const second = gate().operation(declare());
      const call = first({ key });
      await started.opened;
      const other = { key, amount: 2 };
      await rejection(second(other), 'IDEMPOTENCY_KEY_REUSED');
      held.open();
      await call;
    });
  });
}

describe('operations with PGlite', () => {
  let db: PGlite;
  beforeAll(async () => {
    db = new PGlite();
    await db.query(effectTable);
    await migrate(db);
  });
  afterAll(() => db.close());
  const lines = async (prefix: string): Promise<number> =>
    (await db.query(selectEffects, [prefix])).rows.length;

  it('runs once for 30 calls over two gates, and releases its session', async () => {
    const pays = [1, 2].map(() =>
      gateOver(postgres(db)).operation({
        name: 'pay',
        key: (input: Pay) => input.key,
        run: async (input: Pay, { tx }) => statement(tx, insertEffect, [input.key]),
      }),
    );
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, (_, i) => pays[i % 2]!({ key: 'a.' })),
    );
    expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(await lines('a.')).toBe(1);
  });

  it('rolls back what throws, what is swallowed, and what cannot be stored', async () => {
    const gate = gateOver(postgres(db));
    const failing = (name: string, end: (tx: unknown) => unknown) =>
      gate.operation({
        name,
        key: (input: Pay) => input.key,
        run: async (input: Pay, { tx }): Promise<unknown> => {
          await statement(tx, insertEffect, [input.key]);
          return await end(tx);
        },
      });
    const boom = new Error('boom');
    const throwing = failing('throwing', () => Promise.reject(boom));
    expect(await rejection(throwing({ key: 'b.' }))).toBe(boom);
    const swallowing = failing('swallowing', (tx) =>
      statement(tx, 'SELECT 1/0').catch(() => undefined),
    );
    await rejection(swallowing({ key: 'b.' }), 'TRANSACTION_ROLLED_BACK');
    const unstorable = failing('unstorable', () => () => 1);
    await rejection(unstorable({ key: 'b.' }), 'RESULT_INVALID');
    expect(await lines('b.')).toBe(0);
  });
});
