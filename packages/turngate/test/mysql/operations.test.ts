/** The operation engine on MariaDB: competition, deadlocks, lost connections, an auditor. */
import { startProxy } from '@turngate/test-servers';
import type { Pool, PoolOptions } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createGate, type Gate, refuse } from '../../src/index.ts';
import {
  type MysqlConnectionLike,
  type MysqlOptions,
  migrate,
  mysql,
} from '../../src/stores/mysql/index.ts';
import { door, until } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { describeWith } from '../support/servers.ts';
import { createDatabase, ownTransaction, type TestDatabase, write } from './support.ts';

interface Pay {
  readonly key: string;
  readonly amount?: number;
}
type Run = (input: Pay, context: { readonly tx: MysqlConnectionLike }) => Promise<unknown>;

const readCommitted = 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED';
const variants: { name: string; config: PoolOptions & { init?: string } }[] = [
  { name: 'one statement per trip, REPEATABLE READ', config: {} },
  {
    name: 'several statements per trip, READ COMMITTED',
    config: { multipleStatements: true, init: readCommitted },
  },
];

for (const variant of variants) {
  describeWith('mariadb', `operations on MariaDB, ${variant.name}`, () => {
    let database: TestDatabase;
    let counter = 0;
    let key = '';
    beforeAll(async () => {
      database = await createDatabase();
      await database.admin.query('CREATE TABLE account (id INT PRIMARY KEY, n INT NOT NULL)');
    });
    afterAll(() => database?.drop());
    beforeEach(async () => {
      key = `k${++counter}.`;
      await database.admin.query('REPLACE INTO account VALUES (1, 0), (2, 0), (3, 0)');
    });

    function open(
      config: PoolOptions & { init?: string } = {},
      options: MysqlOptions = {},
    ): { pool: Pool; gate: Gate<MysqlConnectionLike> } {
      const pool = database.pool({ ...variant.config, ...config });
      return { pool, gate: createGate({ records: mysql(pool, options), memoryCharsMax: 0 }) };
    }
    const run: Run = async (input, { tx }) => {
      await write(tx as never, input.key);
      return 'ok';
    };
    const declare = (body: Run = run) => ({
      name: 'pay',
      key: (input: Pay) => input.key,
      run: body,
    });
    const add = (tx: MysqlConnectionLike, id: number) =>
      tx.query('UPDATE account SET n = n + 1 WHERE id = ?', [id]);
    async function accounts(): Promise<number[]> {
      const [rows] = await database.admin.query('SELECT n FROM account ORDER BY id');
      return (rows as { n: number }[]).map(({ n }) => n);
    }
    /** No transaction open, no user lock held, no autocommit left off. */
    async function expectClean(pool: Pool): Promise<void> {
      const connection = await pool.getConnection();
      const [rows] = await connection.query({
        sql: 'SELECT @@autocommit, @@in_transaction, RELEASE_ALL_LOCKS()',
        rowsAsArray: true,
      } as never);
      expect(rows).toEqual([[1, 0, 0]]);
      connection.release();
    }

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

      it('1,000 attempts at one key on 10 connections: one runs', async () => {
        const { pool } = open();
        const store = mysql(pool);
        const id = { operation: 'pay', scope: '-', key };
        const attempts = await Promise.all(
          Array.from({ length: 1_000 }, (_, i) =>
            store.attempt(
              { id, fingerprint: '1.a', owner: `o${i}`, retentionMs: 60_000 },
              async (tx) => {
                await write(tx as never, key);
                return { state: 'done', result: '1"ok"' };
              },
            ),
          ),
        );
        expect(attempts.filter(({ kind }) => kind === 'ran')).toHaveLength(1);
        expect(attempts.every(({ kind }) => kind !== 'conflict')).toBe(true);
        expect(await database.lines(key)).toEqual([key]);
        await expectClean(pool);
      });

      it('another payload is told so while the first runs, whoever owns the transaction', async () => {
        const held = door();
        const started = [door(), door()];
        const running = (i: number) =>
          declare(async (input, context) => {
            started[i]?.open();
            await held.opened;
            return run(input, context);
          });
        const { gate, pool } = open();
        const first = gate.operation(running(0))({ key, amount: 1 });
        const inside = open().gate.operation(running(1));
        const second = ownTransaction(pool, (tx) =>
          inside.within(tx, { key: `${key}w`, amount: 1 }),
        );
        await Promise.all(started.map(({ opened }) => opened));
        const stranger = open().gate.operation(declare());
        await rejection(stranger({ key, amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
        await rejection(stranger({ key: `${key}w`, amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
        held.open();
        await Promise.all([first, second]);
        await rejection(stranger({ key, amount: 2 }), 'IDEMPOTENCY_KEY_REUSED');
        expect((await stranger({ key, amount: 1 })).replayed).toBe(true);
      });

      it('a finished but uncommitted call in a caller’s transaction: a stranger waits off-connection, then replays or runs', async () => {
        const { pool, gate } = open();
        const pay = gate.operation(declare());
        const other = open({ connectionLimit: 1 });
        const stranger = other.gate.operation({ ...declare(), waitMs: 20_000 });
        for (const ending of ['commit', 'rollback'] as const) {
          const k = `${key}${ending}`;
          const tx = await pool.getConnection();
          await tx.beginTransaction();
          await pay.within(tx, { key: k });
          const waiting = stranger({ key: k });
          await rejection(stranger({ key: k, amount: 9 }), 'IDEMPOTENCY_KEY_REUSED');
          await until('its only connection is free', async () => {
            await other.pool.query('SELECT 1');
            return true;
          });
          await tx[ending]();
          tx.release();
          expect((await waiting).replayed).toBe(ending === 'commit');
          expect(await database.lines(k)).toEqual([k]);
        }
      });

      it('within, at an older snapshot: a record committed since is found', async () => {
        const { pool, gate } = open();
        const pay = gate.operation(declare());
        const outcome = await ownTransaction(pool, async (tx) => {
          await tx.query('SELECT * FROM account'); // Takes the snapshot, where there is one.
          await pay({ key });
          return await pay.within(tx, { key });
        });
        expect(outcome.replayed).toBe(true);
        expect(await database.lines(key)).toEqual([key]);
      });

      it('a pool of one connection never hangs: 50 different and 50 equal calls', async () => {
        const { gate } = open({ connectionLimit: 1 });
        const pay = gate.operation(declare());
        const calls = Array.from({ length: 50 }, (_, i) => [
          pay({ key: `${key}${i}.` }),
          pay({ key }),
        ]);
        await Promise.all(calls.flat());
        expect(await database.lines(key)).toHaveLength(51);
      });

      it('a refusal is stored alone and replayed', async () => {
        const { gate, pool } = open({ connectionLimit: 1 });
        const pay = gate.operation(
          declare(async (input, { tx }) => {
            await write(tx as never, input.key);
            throw refuse('NO', 'no', { why: 1n });
          }),
        );
        await Promise.all(Array.from({ length: 10 }, () => rejection(pay({ key }), 'REFUSED')));
        expect(await rejection(pay({ key }), 'REFUSED')).toMatchObject({ replayed: true });
        expect(await database.lines(key)).toEqual([]);
        await expectClean(pool);
      });
    });

    describe('deadlocks', () => {
      /** Two handlers that take two rows in opposite order and meet in the middle. */
      function crossing(afterDeadlock?: Run): { runs: () => number; cross: (mine: number) => Run } {
        const met = [door(), door()];
        let runs = 0;
        const cross = (mine: number): Run => {
          return async (input, context) => {
            runs++;
            const [one, two] = mine === 0 ? [1, 2] : [2, 1];
            await add(context.tx, one as number);
            met[mine]?.open();
            await met[1 - mine]?.opened;
            try {
              await add(context.tx, two as number);
            } catch (error) {
              if (afterDeadlock === undefined) throw error;
              return await afterDeadlock(input, context);
            }
            return run(input, context);
          };
        };
        return { runs: () => runs, cross };
      }

      it('one is retried whole and both finish', async () => {
        const { runs, cross } = crossing();
        const { gate } = open();
        const a = gate.operation({ ...declare(cross(0)), name: 'a' });
        const b = gate.operation({ ...declare(cross(1)), name: 'b' });
        await Promise.all([a({ key: `${key}a` }), b({ key: `${key}b` })]);
        expect(runs()).toBe(3);
        expect(await accounts()).toEqual([2, 2, 0]);
        expect(await database.lines(key)).toHaveLength(2);
      });

      it('swallowed by the handler: its later statements leave nothing, the record neither', async () => {
        const { cross } = crossing(async (input, { tx }) => {
          await write(tx as never, `${input.key}zombie`);
          return 'pretends';
        });
        const { gate, pool } = open();
        const a = gate.operation({ ...declare(cross(0)), name: 'a' });
        const b = gate.operation({ ...declare(cross(1)), name: 'b' });
        const results = await Promise.allSettled([a({ key: `${key}a` }), b({ key: `${key}b` })]);
        const [failed] = results.filter(
          ({ status }) => status === 'rejected',
        ) as PromiseRejectedResult[];
        expect(failed?.reason).toMatchObject({ code: 'TRANSACTION_REQUIRED' });
        const lines = await database.lines(key);
        expect(lines).toHaveLength(1);
        expect(lines[0]).not.toContain('zombie');
        expect((await accounts()).slice(0, 2)).toEqual([1, 1]);
        await expectClean(pool);
      });

      it('swallowed by a handler inside the caller’s transaction: nothing of it is written', async () => {
        const { cross } = crossing(async (input, { tx }) => {
          await write(tx as never, `${input.key}zombie`);
          return 'pretends';
        });
        const { gate, pool } = open();
        const ops = [0, 1].map((i) => gate.operation({ ...declare(cross(i)), name: `op${i}` }));
        const results = await Promise.allSettled(
          ops.map((op, i) => ownTransaction(pool, (tx) => op.within(tx, { key: `${key}${i}` }))),
        );
        const [failed] = results.filter(
          ({ status }) => status === 'rejected',
        ) as PromiseRejectedResult[];
        expect(failed?.reason).toMatchObject({ code: 'TRANSACTION_CONFLICT' });
        const lines = await database.lines(key);
        expect(lines).toHaveLength(1);
        expect(lines[0]).not.toContain('zombie');
        await expectClean(pool);
      });

      it('a lock wait timeout undoes the statement; thrown on, it undoes the whole and frees the key', async () => {
        const { gate, pool } = open({ connectionLimit: 2 });
        const blocker = await database.pool().getConnection();
        await blocker.beginTransaction();
        await blocker.query('UPDATE account SET n = 9 WHERE id = 3');
        let swallow = false;
        const pay = gate.operation(
          declare(async (input, { tx }) => {
            await tx.query('SET SESSION innodb_lock_wait_timeout = 1');
            await write(tx as never, input.key);
            const late = add(tx, 3);
            await (swallow ? late.catch(() => undefined) : late);
            return 'ok';
          }),
        );
        const error = await rejection(pay({ key }));
        expect(error['errno']).toBe(1205);
        expect(await database.lines(key)).toEqual([]);
        swallow = true;
        expect((await pay({ key })).replayed).toBe(false);
        expect(await database.lines(key)).toEqual([key]);
        await blocker.rollback();
        blocker.release();
        await expectClean(pool);
      });
    });

    describe('handlers that break things', () => {
      it.each([
        'COMMIT',
        'ROLLBACK',
        'CREATE TABLE IF NOT EXISTS other (id INT)',
        'START TRANSACTION',
      ])(
        'ending the transaction with %s: a typed error, nothing recorded, the pool stays clean',
        async (statement) => {
          const { gate, pool } = open({ connectionLimit: 1 });
          const body: Run = async (input, { tx }) => {
            await tx.query(statement);
            await write(tx as never, input.key);
            return 'ok';
          };
          const error = await rejection(
            gate.operation(declare(body))({ key }),
            'TRANSACTION_REQUIRED',
          );
          expect(error['outcome']).toBe('unknown');
          expect(await database.lines(key)).toEqual([]);
          const inside = gate.operation({ ...declare(body), name: 'inside' });
          await rejection(
            ownTransaction(pool, (tx) => inside.within(tx, { key })),
            'TRANSACTION_REQUIRED',
          );
          await expectClean(pool);
          const [rows] = await database.admin.query(
            'SELECT 1 FROM turngate_record WHERE record_key = ?',
            [Buffer.from(key)],
          );
          expect(rows).toEqual([]);
        },
      );

      it('a nested operation that fails inside a caller’s transaction is undone alone', async () => {
        const { gate, pool } = open();
        const inner = gate.operation({
          ...declare(async (input, { tx }) => {
            await write(tx as never, `${input.key}inner`);
            throw new Error('boom');
          }),
          name: 'inner',
        });
        const outer = gate.operation({
          ...declare(async (input, { tx }) => {
            await write(tx as never, `${input.key}before`);
            await inner.within(tx, input).catch(() => undefined);
            await write(tx as never, `${input.key}after`);
            return 'ok';
          }),
          name: 'outer',
        });
        await ownTransaction(pool, (tx) => outer.within(tx, { key }));
        expect(await database.lines(key)).toEqual([`${key}after`, `${key}before`]);
      });

      it('its own key again inside its own transaction: OPERATION_NESTED, nothing left', async () => {
        const { gate, pool } = open();
        const pay = gate.operation({
          ...declare(async (input, { tx }): Promise<unknown> => await pay.within(tx, input)),
        });
        await rejection(
          ownTransaction(pool, (tx) => pay.within(tx, { key })),
          'OPERATION_NESTED',
        );
        await rejection(pay({ key }), 'OPERATION_NESTED');
        await expectClean(pool);
      });

      it('without tables: STORE_SCHEMA_MISSING', async () => {
        const bare = await createDatabase({ migrated: false });
        const gate = createGate({ records: mysql(bare.pool(variant.config)) });
        await rejection(gate.operation(declare())({ key }), 'STORE_SCHEMA_MISSING');
        const reports = await Promise.all(Array.from({ length: 4 }, () => migrate(bare.admin)));
        expect(reports.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
        expect((await gate.operation({ ...declare(), name: 'pay2' })({ key })).replayed).toBe(
          false,
        );
        await bare.drop();
      });
    });

    describe('lost connections', () => {
      it('killed under the handler: STORE_UNAVAILABLE, nothing left, the key is free at once', async () => {
        const { gate } = open();
        let kill = true;
        const pay = gate.operation(
          declare(async (input, { tx }) => {
            await write(tx as never, input.key);
            if (kill) {
              const [[row]] = await tx.query('SELECT CONNECTION_ID() AS id');
              await database.admin.query(`KILL ${row.id}`);
              await tx.query('SELECT 1');
            }
            return 'ok';
          }),
        );
        await rejection(pay({ key }), 'STORE_UNAVAILABLE');
        kill = false;
        expect((await pay({ key })).replayed).toBe(false);
        expect(await database.lines(key)).toEqual([key]);
      });

      it.each([
        ['before the commit reaches the server', 'before', false],
        ['after the server has committed', 'after', true],
      ] as const)('cut %s: settled by reading, run at most once', async (_, when, committed) => {
        let armed = false;
        const proxy = await startProxy(database.url, {
          filter(connection) {
            let cutting = false;
            return {
              toServer(data) {
                if (!armed || !data.includes('SET autocommit = 1')) return 'pass';
                armed = false;
                if (when === 'before') {
                  connection.cut();
                  return 'drop';
                }
                cutting = true;
                return 'pass';
              },
              toClient() {
                if (!cutting) return 'pass';
                connection.cut();
                return 'drop';
              },
            };
          },
        });
        const { gate } = open({ uri: proxy.url });
        let runs = 0;
        const pay = gate.operation(
          declare(async (input, context) => {
            runs++;
            armed = runs === 1;
            return run(input, context);
          }),
        );
        if (committed) expect((await pay({ key })).replayed).toBe(false);
        else await rejection(pay({ key }), 'STORE_UNAVAILABLE');
        expect(runs).toBe(1);
        expect(await database.lines(key)).toEqual(committed ? [key] : []);
        expect((await pay({ key })).replayed).toBe(committed);
        expect(await database.lines(key)).toEqual([key]);
        await proxy.stop();
      });
    });

    it('stress: callers, kills and deadlocks; the auditor finds each effect exactly once', async () => {
      const gates = [open({ connectionLimit: 5 }), open({ connectionLimit: 5 })];
      const body: Run = async (input, { tx }) => {
        const rows = Math.random() < 0.5 ? [1, 2] : [2, 1];
        for (const id of rows) await add(tx, id);
        if (Math.random() < 0.1) throw new Error('business');
        return run(input, { tx });
      };
      const pays = gates.map(({ gate }) => gate.operation({ ...declare(body), waitMs: 20_000 }));
      const keys = Array.from({ length: 30 }, (_, i) => `${key}${i}.`);
      const done = new Set<string>();
      const caller = async (n: number): Promise<void> => {
        for (let i = 0; i < 12; i++) {
          const k = keys[Math.floor(Math.random() * keys.length)] as string;
          const pay = pays[(n + i) % 2]!;
          const call =
            Math.random() < 0.3
              ? ownTransaction(gates[n % 2]!.pool, (tx) => pay.within(tx, { key: k }))
              : pay({ key: k });
          await call.then(
            () => done.add(k),
            () => undefined,
          );
        }
      };
      const killer = async (): Promise<void> => {
        for (let i = 0; i < 15; i++) {
          const [rows] = await database.admin.query(
            "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID() AND command = 'Query'",
          );
          const [victim] = rows as { id: number }[];
          if (victim) await database.admin.query(`KILL ${victim.id}`).catch(() => undefined);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      };
      await Promise.all([...Array.from({ length: 16 }, (_, n) => caller(n)), killer()]);
      const lines = await database.lines(key);
      expect(lines).toEqual([...new Set(lines)]);
      for (const k of done) expect(lines).toContain(k);
      const [rows] = await database.admin.query(
        'SELECT CONVERT(record_key USING utf8mb4) AS k, state FROM turngate_record WHERE LEFT(record_key, ?) = ?',
        [key.length, Buffer.from(key)],
      );
      const records = rows as { k: string; state: Buffer }[];
      expect(records.map(({ k }) => k).sort()).toEqual([...lines].sort());
      expect(records.every(({ state }) => state.toString() === 'done')).toBe(true);
      expect((await accounts()).slice(0, 2)).toEqual([lines.length, lines.length]);
      for (const { pool } of gates) await expectClean(pool);
    });
  });
}
