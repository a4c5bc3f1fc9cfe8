/** Failures that other libraries had in production: docs/saga-experiments.md says which test is which. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { SqlDatabase, SqlSession } from '../../src/contract/sql-session.ts';
import { type Gate, refuse } from '../../src/index.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import { gidAt, newGid } from '../../src/saga/gid.ts';
import {
  createBarrier,
  createExternalBarrier,
  defineSaga,
  defineTcc,
  externalParticipant,
  localParticipant,
  type Participant,
} from '../../src/saga/index.ts';
import { door, pause, until } from '../support/clock.ts';
import { type Opened, targets } from './targets.ts';

describe.each(targets)('experiments on $name', (kind) => {
  describe.skipIf(kind.missing)('', () => {
    let opened: Opened;
    let database: SqlDatabase;
    let serial = 0;
    const barrier = createBarrier();
    const gates: Gate<unknown>[] = [];
    const { signal } = new AbortController();
    const context = () => ({ gid: newGid(systemRuntime), branch: 'b', signal });
    const newGate = (): Gate<unknown> => {
      const gate = opened.gate();
      gates.push(gate);
      return gate;
    };
    const note = async (sql: Pick<SqlSession, 'query'>, line: string): Promise<void> => {
      await sql.query('INSERT INTO effect (line) VALUES ($1)', [line]);
    };
    const lines = async (prefix: string): Promise<string[]> => {
      const text = 'SELECT line FROM effect WHERE line LIKE $1 ORDER BY line';
      const { rows } = await database.query(text, [`${prefix} %`]);
      return rows.map((row) => String(row['line']).slice(prefix.length + 1));
    };

    beforeAll(async () => {
      opened = await kind.open();
      ({ database } = opened);
      await database.query('CREATE TABLE purse (name VARCHAR(40) PRIMARY KEY, money BIGINT)', []);
    });
    afterEach(async () => {
      await Promise.all(gates.splice(0).map((gate) => gate.close()));
    });
    afterAll(() => opened?.close());

    it('1: a try that reached its provider and then failed is cancelled there, once', async () => {
      const calls: string[] = [];
      const provider = externalParticipant<number>(createExternalBarrier(database), {
        try: async () => {
          calls.push('try');
          throw new Error('the answer was cut off');
        },
        confirm: async () => void calls.push('confirm'),
        cancel: async () => void calls.push('cancel'),
      });
      const run = newGate().stagedOperation(
        defineTcc<unknown, string>({
          name: `external-${++serial}`,
          key: (id) => id,
          tryAttemptsMax: 1,
          branches: [{ name: 'provider', participant: provider as never, payload: () => 1 }],
        }),
      );
      await expect(run('x')).rejects.not.toMatchObject({ code: 'REFUSED' });
      await expect(run('x')).rejects.toMatchObject({ refusal: { code: 'TCC_CANCELLED' } });
      await expect(run('x')).rejects.toMatchObject({ refusal: { code: 'TCC_CANCELLED' } });
      expect(calls).toEqual(['try', 'cancel']);
    });

    it('5: three tries at once, the first is rolled back: the others never see a deadlock', async () => {
      for (let round = 0; round < 10; round++) {
        const name = `three-${++serial}`;
        let calls = 0;
        const inside = door();
        const participant = localParticipant<number>(database, barrier, {
          async try(sql) {
            const first = calls++ === 0;
            await note(sql, `${name} try`);
            if (!first) return;
            inside.open();
            await pause(40); // The two others queue up at the row meanwhile.
            throw new Error('the first is rolled back');
          },
          confirm: async () => undefined,
          cancel: async () => undefined,
        });
        const call = context();
        const first = participant.try(1, call);
        await inside.opened;
        const results = await Promise.allSettled([
          first,
          participant.try(1, call),
          participant.try(1, call),
        ]);
        expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
        expect(await lines(name)).toEqual(['try']);
      }
    });

    /** Money that is reserved by a guard in the statement, and given back by what was taken. */
    const purse = (name: string): Participant<number> =>
      localParticipant<number>(database, barrier, {
        async try(sql, amount) {
          const { affectedRows } = await sql.query(
            'UPDATE purse SET money = money - $2 WHERE name = $1 AND money >= $2',
            [name, amount],
          );
          if (affectedRows === 0) throw refuse('TOO_LITTLE', 'not enough');
        },
        confirm: async () => undefined,
        async cancel(sql, amount) {
          await sql.query('UPDATE purse SET money = money + $2 WHERE name = $1', [name, amount]);
        },
      });
    const fill = async (money: number): Promise<string> => {
      const name = `purse-${++serial}`;
      await database.query('INSERT INTO purse (name, money) VALUES ($1, $2)', [name, money]);
      return name;
    };
    const moneyOf = async (name: string): Promise<number> =>
      Number(
        (await database.query('SELECT money FROM purse WHERE name = $1', [name])).rows[0]?.[
          'money'
        ],
      );

    it('7: a repeat of what took the last money is answered as the first, not "too little"', async () => {
      const name = await fill(10);
      const call = context();
      await purse(name).try(10, call);
      await purse(name).try(10, call);
      expect(await moneyOf(name)).toBe(0);
    });

    it('11: a cancel that comes while the try works waits for it and takes it back', async () => {
      const name = `slow-${++serial}`;
      const [inside, goOn] = [door(), door()];
      const participant = localParticipant<number>(database, barrier, {
        async try(sql) {
          await note(sql, `${name} try`);
          inside.open();
          await goOn.opened;
        },
        confirm: (sql) => note(sql, `${name} confirm`),
        cancel: (sql) => note(sql, `${name} cancel`),
      });
      const call = context();
      const tried = participant.try(1, call);
      await inside.opened;
      const cancelled = participant.cancel(1, call);
      await pause(50); // It has asked, and waits at the row.
      goOn.open();
      await Promise.all([tried, cancelled]);
      await expect(participant.confirm(1, call)).rejects.toMatchObject({ code: 'BRANCH_CONFLICT' });
      expect(await lines(name)).toEqual(['cancel', 'try']);
    });

    it('13: a finished saga hears nothing of a deadline that comes later', async () => {
      let undone = 0;
      const gate = newGate();
      const run = gate.stagedOperation(
        defineSaga<unknown, string>({
          name: `late-${++serial}`,
          key: (id) => id,
          deadlineMs: 100,
          steps: [{ name: 'a', do: () => 1, undo: () => void undone++ }],
        }),
      );
      const startMs = Date.now();
      await run('x');
      await until('the deadline is over', () => Date.now() > startMs + 150);
      const recovery = gate.recover({ everyMs: 3_600_000 });
      await recovery.sweep();
      await recovery.stop();
      expect(await run('x')).toMatchObject({ replayed: true, value: { a: 1 } });
      expect(undone).toBe(0);
    });

    it('15: an undo is right although others have changed the row in between', async () => {
      const name = await fill(10);
      const call = context();
      await purse(name).try(4, call);
      await database.query('UPDATE purse SET money = money + 7 WHERE name = $1', [name]);
      await purse(name).cancel(4, call);
      expect(await moneyOf(name)).toBe(17);
    });

    it('17: what a purge forgot is refused by its age, never run anew', async () => {
      const horizonMs = 3_600_000;
      const aged = createBarrier({ horizonMs });
      const name = `aged-${++serial}`;
      const call = (gid: string, op: 'try' | 'cancel') =>
        database.transaction((sql) =>
          aged.call(sql, { gid, branch: 'b', op }, () => note(sql, `${name} ${op}`)),
        );
      const names = Array.from({ length: 3 }, (_, i) =>
        gidAt(Date.now() - horizonMs / 2, `${name}-${i}`),
      ) as [string, string, string];
      const [ended, open, young] = names;
      for (const gid of names) await call(gid, 'try');
      await call(ended, 'cancel');
      await call(young, 'cancel');
      // Time passes: what they are called tells when they were made.
      const past = (suffix: string): string => gidAt(Date.now() - 2.5 * horizonMs, suffix);
      const rename = 'UPDATE turngate_branch SET gid = $2 WHERE gid = $1';
      await database.query(rename, [ended, past(`${name}-0`)]);
      await database.query(rename, [open, past(`${name}-1`)]);
      expect(await aged.purge(database)).toBe(1);
      await expect(call(young, 'try')).rejects.toMatchObject({ code: 'BRANCH_REFUSED' });
      const left = 'SELECT gid FROM turngate_branch WHERE gid LIKE $1 ORDER BY gid';
      const { rows } = await database.query(left, [`%-${name}-%`]);
      const suffixes = rows.map((row) => String(row['gid']).slice(11));
      expect(suffixes).toEqual([`${name}-1`, `${name}-2`]);
      // As old as those that may have been purged: no look at the table, no body.
      for (const i of [0, 1]) {
        await expect(call(past(`${name}-${i}`), 'try')).rejects.toMatchObject({
          code: 'GID_EXPIRED',
        });
      }
      expect(await lines(name)).toEqual(['cancel', 'cancel', 'try', 'try', 'try']);
    });

    it('19: recovery leaves what lives alone, in its own process and in others', async () => {
      const [inside, goOn] = [door(), door()];
      let runs = 0;
      const declaration = {
        name: `alive-${++serial}`,
        key: (id: string) => id,
        async run() {
          runs++;
          inside.open();
          await goOn.opened;
          return 'done';
        },
      };
      const gatesHere = [newGate(), newGate()];
      const [run] = gatesHere.map((gate) => gate.stagedOperation(declaration));
      const call = run?.('x');
      await inside.opened;
      for (const gate of gatesHere) {
        const recovery = gate.recover({ everyMs: 3_600_000 });
        expect(await recovery.sweep()).toBe(0);
        await recovery.stop();
      }
      goOn.open();
      expect((await call)?.value).toBe('done');
      expect(runs).toBe(1);
    });

    it('21: what a failed step tells the next attempt has no stack, and is told alike', async () => {
      const told: unknown[] = [];
      const run = newGate().stagedOperation({
        name: `stack-${++serial}`,
        key: (id: string) => id,
        async run(_: string, { step }) {
          const error = await step('no', (_key) => {
            throw refuse('NO', 'no', { why: 'business' });
          }).catch((caught: unknown) => caught);
          const { refusal } = error as { refusal: unknown };
          told.push(JSON.stringify(refusal));
          if (told.length === 1) throw new Error('once more');
          return await step('next', (_key) => JSON.stringify(refusal));
        },
      });
      await run('x').catch(() => undefined);
      const { value } = await run('x');
      expect(told).toHaveLength(2);
      expect(told[0]).toBe(told[1]);
      expect(value).toBe(told[0]);
      expect(value).not.toMatch(/\bat .*:\d+/);
    });
  });
});
