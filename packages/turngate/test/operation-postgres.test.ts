/** The operation engine on PostgreSQL: competition, lost connections, killed processes. */
import { createServer } from 'node:net';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createGate, type Gate, isTurngateError, type Operation, refuse } from '../src/index.ts';
import {
  migrate,
  type PgClientLike,
  type PostgresOptions,
  postgres,
} from '../src/stores/postgres/index.ts';
import { startChild } from './support/child.ts';
import { door, pause, until } from './support/clock.ts';
import { rejection } from './support/errors.ts';
import { PgProxy } from './support/pg-proxy.ts';
import {
  createDatabase,
  createPool,
  insertEffect,
  pgTransaction,
  serverUrl,
  type TestDatabase,
} from './support/postgres.ts';

interface Pay {
  readonly key: string;
  readonly amount?: number;
}
type Run = (input: Pay, context: { readonly tx: PgClientLike }) => Promise<unknown>;

let database: TestDatabase;
let counter = 0;
let key = '';
const pools: pg.Pool[] = [];

describe.skipIf(serverUrl === '')('operations on PostgreSQL', () => {
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    await database?.drop();
  });
  beforeEach(() => {
    key = `k${++counter}.`;
  });

  function open(
    config: pg.PoolConfig = {},
    options: PostgresOptions = {},
  ): { pool: pg.Pool; gate: Gate<PgClientLike> } {
    const pool = createPool(config.connectionString ?? database.url, config);
    pools.push(pool);
    return { pool, gate: createGate({ records: postgres(pool, options), memoryCharsMax: 0 }) };
  }

  const write: Run = async (input, { tx }) => {
    await tx.query(insertEffect, [input.key]);
    return 'ok';
  };
  const declare = (run: Run = write) => ({ name: 'pay', key: (input: Pay) => input.key, run });

  describe('competition', () => {
    it('50 calls over two gates: one effect, 49 equal replays', async () => {
      const pays = [open(), open()].map(({ gate }) => gate.operation(declare()));
      const calls = Array.from({ length: 50 }, (_, i) => pays[i % 2]!({ key }));
      const outcomes = await Promise.all(calls);
      expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1);
      const times = new Set(outcomes.map(({ firstProcessedAt }) => firstProcessedAt.getTime()));
      expect(times.size).toBe(1);
      expect(await database.lines(key)).toEqual([key]);
    });

    it('another payload is told so while the first runs in another gate, then also', async () => {
      const held = door();
      const started = door();
      const first = open().gate.operation(
        declare(async (input, context) => {
          started.open();
          await held.opened;
          return write(input, context);
        }),
      );
      const second = open().gate.operation(declare());
      const call = first({ key, amount: 1 });
      await started.opened;
      await rejection(second({ key, amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
      held.open();
      await call;
      await rejection(second({ key, amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
      expect((await second({ key, amount: 1 })).replayed).toBe(true);
    });

    it('a pool of one connection never hangs: 50 different and 50 equal calls', async () => {
      const { gate } = open({ max: 1 });
      const pay = gate.operation(declare());
      const calls = Array.from({ length: 50 }, (_, i) => [
        pay({ key: `${key}${i}.` }),
        pay({ key }),
      ]);
      await Promise.all(calls.flat());
      expect(await database.lines(key)).toHaveLength(51);
    });

    it('a pool of one connection stores refusals', async () => {
      const { gate } = open({ max: 1 });
      const pay = gate.operation(
        declare(async (input, { tx }) => {
          await tx.query(insertEffect, [input.key]);
          throw refuse('NO', 'no', { why: 1n });
        }),
      );
      await Promise.all(Array.from({ length: 10 }, () => rejection(pay({ key }), 'REFUSED')));
      const again = await rejection(pay({ key }), 'REFUSED');
      expect(again).toMatchObject({ replayed: true, refusal: { data: { why: 1n } } });
      expect(await database.lines(key)).toEqual([]);
    });

    it('who waits holds no connection', async () => {
      const held = door();
      const started = door();
      const slow = open().gate.operation(
        declare(async (input, context) => {
          started.open();
          await held.opened;
          return write(input, context);
        }),
      );
      const { pool, gate } = open({ max: 2 });
      const waiting = gate.operation({ ...declare(), waitMs: 20_000 });
      const other = gate.operation({ ...declare(), name: 'other' });
      const first = slow({ key });
      await started.opened;
      const waiters = Array.from({ length: 20 }, () => waiting({ key }));
      await until('the waiters have given their connections back', async () => {
        for (let i = 0; i < 3; i++) await other({ key: `${key}${Math.random()}` });
        return pool.totalCount > 0 && pool.idleCount === pool.totalCount;
      });
      held.open();
      await first;
      const outcomes = await Promise.all(waiters);
      expect(outcomes.every(({ replayed }) => replayed)).toBe(true);
    });

    it('a deadlock is retried whole and both finish', async () => {
      await database.admin.query(
        'CREATE TABLE IF NOT EXISTS account (id int PRIMARY KEY, n int NOT NULL)',
      );
      await database.admin.query('INSERT INTO account VALUES (1, 0), (2, 0)');
      const met = [door(), door()];
      let runs = 0;
      const cross = (mine: number): Run => {
        return async (input, { tx }) => {
          runs++;
          const [one, two] = mine === 0 ? [1, 2] : [2, 1];
          await tx.query("SET LOCAL deadlock_timeout = '20ms'");
          await tx.query('UPDATE account SET n = n + 1 WHERE id = $1', [one]);
          met[mine]?.open();
          await met[1 - mine]?.opened;
          await tx.query('UPDATE account SET n = n + 1 WHERE id = $1', [two]);
          return write(input, { tx });
        };
      };
      const { gate } = open();
      const a = gate.operation({ ...declare(cross(0)), name: 'a' });
      const b = gate.operation({ ...declare(cross(1)), name: 'b' });
      await Promise.all([a({ key: `${key}a` }), b({ key: `${key}b` })]);
      expect(runs).toBeGreaterThan(2);
      const { rows } = await database.admin.query('SELECT n FROM account ORDER BY id');
      expect(rows).toEqual([{ n: 2 }, { n: 2 }]);
      expect(await database.lines(key)).toHaveLength(2);
    });
  });

  describe('handlers that break things', () => {
    it('swallowing a failed statement: TRANSACTION_ROLLED_BACK, nothing recorded', async () => {
      const { gate, pool } = open();
      const pay = gate.operation(
        declare(async (input, { tx }) => {
          await tx.query(insertEffect, [input.key]);
          await tx.query('SELECT 1/0').catch(() => undefined);
          return 'ok';
        }),
      );
      const error = await rejection(pay({ key }), 'TRANSACTION_ROLLED_BACK');
      expect(error['outcome']).toBe('not-applied');
      expect(await database.lines(key)).toEqual([]);
      expect(pool.idleCount).toBe(pool.totalCount);
      expect((await gate.operation({ ...declare(), name: 'pay2' })({ key })).replayed).toBe(false);
    });

    it.each(['COMMIT', 'ROLLBACK'])(
      'ending the transaction with %s: a typed error, nothing recorded, the pool stays clean',
      async (statement) => {
        const { gate, pool } = open({ max: 1 });
        const bad = gate.operation({
          ...declare(async (input, { tx }) => {
            await tx.query(insertEffect, [input.key]);
            await tx.query(statement);
            return 'ok';
          }),
          name: `bad.${statement.toLowerCase()}`,
        });
        await rejection(bad({ key }), 'TRANSACTION_REQUIRED');
        const { rows } = await pool.query(
          'SELECT count(*)::int AS n FROM turngate_record WHERE key = $1',
          [key],
        );
        expect(rows).toEqual([{ n: 0 }]);
      },
    );

    it('a result that cannot be stored is rolled back', async () => {
      const pay = open().gate.operation(
        declare(async (input, context) => {
          await write(input, context);
          return () => 1;
        }),
      );
      await rejection(pay({ key }), 'RESULT_INVALID');
      expect(await database.lines(key)).toEqual([]);
    });

    it('an error of its own, also of another service’s connection, comes back as it is', async () => {
      const refused = Object.assign(new Error('their service'), { code: 'ECONNREFUSED' });
      const pay = open().gate.operation(
        declare(async (input, context) => {
          await write(input, context);
          throw refused;
        }),
      );
      expect(await rejection(pay({ key }))).toBe(refused);
      expect(await database.lines(key)).toEqual([]);
    });

    it('its unique violation comes back as it is and frees the key', async () => {
      await database.admin.query('CREATE TABLE IF NOT EXISTS once (id text PRIMARY KEY)');
      await database.admin.query('INSERT INTO once VALUES ($1)', [key]);
      const { gate } = open();
      const pay = gate.operation(
        declare(async (input, { tx }) => {
          await tx.query('INSERT INTO once VALUES ($1)', [input.key]);
        }),
      );
      expect(await rejection(pay({ key }))).toMatchObject({ code: '23505' });
      await database.admin.query('DELETE FROM once WHERE id = $1', [key]);
      expect((await pay({ key })).replayed).toBe(false);
    });

    it('its own key again inside its own transaction: OPERATION_NESTED, nothing left', async () => {
      const { gate } = open();
      const pay: Operation<PgClientLike, Pay, unknown> = gate.operation(
        declare(async (input, context): Promise<unknown> => {
          await write(input, context);
          return await pay.within(context.tx, input);
        }),
      );
      await rejection(pay({ key }), 'OPERATION_NESTED');
      expect(await database.lines(key)).toEqual([]);
      expect((await open().gate.operation(declare())({ key })).replayed).toBe(false);
    });
  });

  describe('connections that die', () => {
    it('a backend killed under the handler: STORE_UNAVAILABLE, key free, nothing written', async () => {
      const { gate, pool } = open();
      let kill = true;
      const pay = gate.operation(
        declare(async (input, { tx }) => {
          await tx.query(insertEffect, [input.key]);
          const { rows } = await tx.query('SELECT pg_backend_pid() AS pid');
          if (kill) await database.admin.query('SELECT pg_terminate_backend($1)', [rows[0].pid]);
          await tx.query('SELECT 1');
          return 'ok';
        }),
      );
      const error = await rejection(pay({ key }), 'STORE_UNAVAILABLE');
      expect(error['outcome']).toBe('not-applied');
      kill = false;
      expect((await pay({ key })).replayed).toBe(false);
      expect(await database.lines(key)).toEqual([key]);
      expect(pool.idleCount).toBe(pool.totalCount);
    });

    it('a handler that swallows the death of its backend is not recorded', async () => {
      const { gate } = open();
      const pay = gate.operation(
        declare(async (input, { tx }) => {
          await tx.query(insertEffect, [input.key]);
          const { rows } = await tx.query('SELECT pg_backend_pid() AS pid');
          await database.admin.query('SELECT pg_terminate_backend($1)', [rows[0].pid]);
          await tx.query('SELECT 1').catch(() => undefined);
          return 'ok';
        }),
      );
      const error = await rejection(pay({ key }));
      expect(isTurngateError(error)).toBe(true);
      expect(error['outcome']).toBe('not-applied');
      expect(await database.lines(key)).toEqual([]);
    });

    it('a backend that dies idle in the pool does not reach the next caller twice', async () => {
      const { gate, pool } = open({ max: 1 });
      const pay = gate.operation(declare());
      await pay({ key: `${key}1` });
      const client = await pool.connect();
      const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
      client.release();
      await database.admin.query('SELECT pg_terminate_backend($1)', [rows[0].pid]);
      await pay({ key: `${key}2` }).catch(() => undefined); // May meet the dead one.
      await pay({ key: `${key}3` });
      expect(await database.lines(`${key}3`)).toHaveLength(1);
    });

    it('the answer to COMMIT is lost after it happened: settled by reading, one effect', async () => {
      const proxy = await PgProxy.start(database.url);
      const { gate } = open({ connectionString: proxy.url });
      let runs = 0;
      const pay = gate.operation(
        declare(async (input, context) => {
          runs++;
          proxy.fate = 'commit-then-cut';
          return write(input, context);
        }),
      );
      const outcome = await pay({ key });
      expect(proxy.cuts).toBe(1);
      expect(outcome).toMatchObject({ value: 'ok', replayed: false });
      expect((await pay({ key })).replayed).toBe(true);
      expect(runs).toBe(1);
      expect(await database.lines(key)).toEqual([key]);
      await proxy.stop();
    });

    it('COMMIT is lost before it happened: settled as rolled back, not run again, key free', async () => {
      const proxy = await PgProxy.start(database.url);
      const { gate } = open({ connectionString: proxy.url });
      let runs = 0;
      const pay = gate.operation(
        declare(async (input, context) => {
          if (++runs === 1) proxy.fate = 'cut-before-commit';
          return write(input, context);
        }),
      );
      const error = await rejection(pay({ key }), 'STORE_UNAVAILABLE');
      expect(error['outcome']).toBe('not-applied');
      expect([runs, proxy.cuts]).toEqual([1, 1]);
      expect(await database.lines(key)).toEqual([]);
      expect((await pay({ key })).replayed).toBe(false);
      expect(await database.lines(key)).toEqual([key]);
      await proxy.stop();
    });

    it('the same for 20 callers at once: one effect, one value', async () => {
      const proxy = await PgProxy.start(database.url);
      const { gate } = open({ connectionString: proxy.url });
      const pay = gate.operation(
        declare(async (input, context) => {
          proxy.fate = 'commit-then-cut';
          return write(input, context);
        }),
      );
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => pay({ key })));
      expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1);
      expect(await database.lines(key)).toEqual([key]);
      await proxy.stop();
    });

    it('a server that stops answering ends the call within answerLimitMs, and nothing hangs on', async () => {
      const proxy = await PgProxy.start(database.url);
      const { gate, pool } = open({ connectionString: proxy.url, max: 2 }, { answerLimitMs: 300 });
      const pay = gate.operation(declare());
      await pay({ key: `${key}warm` });
      proxy.muted = true;
      const startMs = Date.now();
      await rejection(pay({ key }), 'STORE_UNAVAILABLE');
      expect(Date.now() - startMs).toBeLessThan(2_000);
      proxy.muted = false;
      await until('a call gets through again', async () => {
        try {
          await pay({ key: `${key}again` });
          return true;
        } catch {
          return false;
        }
      });
      expect(pool.totalCount).toBeLessThanOrEqual(2);
      await proxy.stop();
    });

    it('no server: STORE_UNAVAILABLE quickly', async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await until('it listens', () => server.listening);
      const { port } = server.address() as { port: number };
      await new Promise((resolve) => server.close(resolve));
      const { gate } = open({ connectionString: `postgres://u:p@127.0.0.1:${port}/d` });
      const pay = gate.operation(declare());
      const startMs = Date.now();
      const error = await rejection(pay({ key }), 'STORE_UNAVAILABLE');
      expect(Date.now() - startMs).toBeLessThan(2_000);
      expect(error['retryAfterMs']).toBe(1_000);
    });
  });

  describe('schema', () => {
    it('tables missing: STORE_SCHEMA_MISSING, then migrate() from five processes at once', async () => {
      const empty = await createDatabase({ migrated: false });
      const { gate } = open({ connectionString: empty.url });
      const pay = gate.operation(declare());
      await rejection(pay({ key }), 'STORE_SCHEMA_MISSING');
      const own = Array.from({ length: 5 }, () => createPool(empty.url, { max: 1 }));
      const reports = await Promise.all(own.map((pool) => migrate(pool)));
      expect(reports.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
      expect(new Set(reports.map(({ version }) => version)).size).toBe(1);
      await Promise.all(own.map((pool) => pool.end()));
      expect((await pay({ key })).replayed).toBe(false);
      await Promise.all(pools.splice(-1).map((pool) => pool.end()));
      await empty.drop();
    });
  });

  describe('within', () => {
    it('waits for the other transaction at most waitMs, then REQUEST_IN_PROGRESS', async () => {
      const { gate, pool } = open();
      const pay = gate.operation({ ...declare(), waitMs: 100 });
      await pgTransaction(pool, async (one) => {
        await pay.within(one, { key });
        await pgTransaction(pool, async (two) => {
          await rejection(pay.within(two, { key }), 'REQUEST_IN_PROGRESS');
          await two.query(insertEffect, [`${key}two`]);
        });
      });
      expect(await database.lines(key)).toEqual([key, `${key}two`]);
      expect((await pay({ key })).replayed).toBe(true);
    });

    it('gets the first result as soon as the other transaction has committed', async () => {
      const { gate, pool } = open();
      const pay = gate.operation(declare());
      const ran = door();
      const held = door();
      const one = pgTransaction(pool, async (tx) => {
        await pay.within(tx, { key });
        ran.open();
        await held.opened;
      });
      await ran.opened;
      const two = pgTransaction(pool, (tx) => pay.within(tx, { key }));
      await pause(30);
      held.open();
      await one;
      expect(await two).toMatchObject({ value: 'ok', replayed: true });
      expect(await database.lines(key)).toEqual([key]);
    });

    it('needs an open transaction', async () => {
      const { gate, pool } = open();
      const pay = gate.operation(declare());
      const client = await pool.connect();
      await rejection(pay.within(client, { key }), 'TRANSACTION_REQUIRED');
      client.release();
      expect(await database.lines(key)).toEqual([]);
    });
  });

  describe('kill -9', () => {
    it.each(['before-commit', 'after-commit'])(
      'of the process %s: a retry elsewhere leaves one effect',
      async (where) => {
        const child = startChild('operation-child.mjs', [database.url, key, where]);
        await child.said(where === 'before-commit' ? 'written' : 'committed');
        child.process.kill('SIGKILL');
        expect(await child.ended).toBe('SIGKILL');
        const pay = open().gate.operation({ ...declare(), name: 'child.pay' });
        const outcome = await pay({ key });
        expect(outcome.replayed).toBe(where === 'after-commit');
        if (outcome.replayed) expect(outcome.value).toEqual({ by: child.process.pid });
        expect(await database.lines(key)).toEqual([key]);
      },
    );
  });
});
