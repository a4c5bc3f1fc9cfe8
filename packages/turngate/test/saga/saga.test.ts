/** SAGA and TCC over staged operations, on both databases, with failures at every place. */
import { createServer, type Server } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { SqlDatabase } from '../../src/contract/sql-session.ts';
import { type Gate, refuse } from '../../src/index.ts';
import {
  createBarrier,
  defineSaga,
  defineTcc,
  httpParticipant,
  localParticipant,
  type Participant,
  participantEndpoint,
  readGuard,
  releaseGuard,
  takeGuard,
} from '../../src/saga/index.ts';
import { until } from '../support/clock.ts';
import { type Opened, targets } from './targets.ts';

describe.each(targets)('transactions across services on $name', (kind) => {
  describe.skipIf(kind.missing)('', () => {
    let opened: Opened;
    let database: SqlDatabase;
    let gate: Gate<unknown>;
    let serial = 0;
    const barrier = createBarrier();
    const gates: Gate<unknown>[] = [];

    beforeAll(async () => {
      opened = await kind.open();
      ({ database } = opened);
    });
    afterAll(() => opened.close());
    afterEach(async () => {
      await Promise.all(gates.splice(0).map((one) => one.close()));
    });

    const newGate = (): Gate<unknown> => {
      gate = opened.gate();
      gates.push(gate);
      return gate;
    };
    const name = (): string => `saga-${++serial}`;
    const key = (input: string): string => input;

    it('does its steps in order once, and a repeat gets the first outputs', async () => {
      const log: string[] = [];
      const run = newGate().stagedOperation(
        defineSaga<unknown, string>({
          name: name(),
          key,
          steps: ['a', 'b', 'c'].map((step) => ({
            name: step,
            do: ({ input, outputs }) => {
              log.push(step);
              return `${input}-${step}-${Object.keys(outputs).length}`;
            },
          })),
        }),
      );
      const expected = { a: 'x-a-0', b: 'x-b-1', c: 'x-c-2' };
      expect((await run('x')).value).toEqual(expected);
      expect(await run('x')).toMatchObject({ replayed: true, value: expected });
      expect(log).toEqual(['a', 'b', 'c']);
    });

    it('undoes in reverse order what was done when a step says no, and tells it to every repeat', async () => {
      const log: string[] = [];
      const step = (word: string) => ({
        name: word,
        do: () => void log.push(`do ${word}`),
        undo: () => void log.push(`undo ${word}`),
      });
      const no = {
        name: 'no',
        do: () => {
          throw refuse('CARD_DECLINED', 'no money');
        },
        undo: () => void log.push('undo no'),
      };
      const run = newGate().stagedOperation(
        defineSaga<unknown, string>({
          name: name(),
          key,
          steps: [step('a'), step('b'), no, step('c')],
        }),
      );
      for (let i = 0; i < 2; i++) {
        await expect(run('x')).rejects.toMatchObject({
          code: 'REFUSED',
          refusal: { code: 'SAGA_UNDONE', data: { step: 'no', code: 'CARD_DECLINED' } },
        });
      }
      expect(log).toEqual(['do a', 'do b', 'undo b', 'undo a']);
    });

    it('runs neighbours side by side and undoes a step that began and never told its end', async () => {
      const log: string[] = [];
      const keys = new Set<string>();
      let together = 0;
      let most = 0;
      let meet!: () => void;
      const met = new Promise<void>((resolve) => {
        meet = resolve;
      });
      const side = (word: string) => ({
        name: word,
        parallel: 'both',
        do: async () => {
          most = Math.max(most, ++together);
          if (together === 2) meet();
          await met; // Each waits for the other: alone it would wait for ever.
          together--;
        },
        undo: () => void log.push(`undo ${word}`),
      });
      const broken = {
        name: 'broken',
        do: ({ providerKey }: { providerKey: string }) => {
          keys.add(providerKey);
          throw new Error('no answer');
        },
        undo: ({ outcome }: { outcome: string }) => void log.push(`undo broken ${outcome}`),
      };
      const run = newGate().stagedOperation(
        defineSaga<unknown, string>({
          name: name(),
          key,
          forwardAttemptsMax: 2,
          steps: [side('left'), side('right'), broken],
        }),
      );
      for (let i = 0; i < 2; i++)
        await expect(run('x')).rejects.not.toMatchObject({ code: 'REFUSED' });
      await expect(run('x')).rejects.toMatchObject({ refusal: { code: 'SAGA_UNDONE' } });
      expect(most).toBe(2);
      expect(log[0]).toBe('undo broken unknown');
      expect(log.slice(1).sort()).toEqual(['undo left', 'undo right']);
      expect(keys.size).toBe(1);
    });

    it('never turns back after the pivot', async () => {
      const log: string[] = [];
      let failures = 4;
      const run = newGate().stagedOperation(
        defineSaga<unknown, string>({
          name: name(),
          key,
          forwardAttemptsMax: 1,
          steps: [
            { name: 'pivot', pivot: true, do: () => 1, undo: () => void log.push('undo pivot') },
            {
              name: 'after',
              do: () => {
                if (failures-- > 0) throw new Error('not yet');
                return 'done';
              },
            },
          ],
        }),
      );
      for (let i = 0; i < 4; i++) await expect(run('x')).rejects.toThrow();
      expect((await run('x')).value).toMatchObject({ after: 'done' });
      expect(log).toEqual([]);
    });

    it('parks when an undo always fails, and goes on where an operator resumes it', async () => {
      let broken = true;
      const operation = name();
      const run = newGate().stagedOperation(
        defineSaga<unknown, string>({
          name: operation,
          key,
          attemptsMax: 3,
          steps: [
            {
              name: 'a',
              do: () => 1,
              undo: () => {
                if (broken) throw new Error('the other side is down');
              },
            },
            {
              name: 'no',
              do: () => {
                throw refuse('NO', 'no');
              },
            },
          ],
        }),
      );
      const codes: string[] = [];
      // Attempts before their time are not counted: it parks when those that were due have failed.
      await until(
        'it is parked',
        async () => {
          await run('x').catch((error: { code: string }) => codes.push(error.code));
          return codes.at(-1) === 'OPERATION_PARKED';
        },
        60_000,
      );
      expect(new Set(codes)).toEqual(new Set(['OUTCOME_UNKNOWN', 'OPERATION_PARKED']));
      broken = false;
      await opened.staged.decide({ operation, scope: '-', key: 'x' }, { verb: 'resume' });
      await expect(run('x')).rejects.toMatchObject({ refusal: { code: 'SAGA_UNDONE' } });
    });

    it('starts with the transaction it is enqueued in, and not when that rolls back', async () => {
      const log: string[] = [];
      const run = newGate().stagedOperation(
        defineSaga<unknown, string>({
          name: name(),
          key,
          steps: [{ name: 'a', do: ({ input }) => void log.push(input) }],
        }),
      );
      await database.transaction((_sql, tx) => run.enqueue(tx, 'kept'));
      await database
        .transaction(async (_sql, tx) => {
          await run.enqueue(tx, 'lost');
          throw new Error('rolled back');
        })
        .catch(() => undefined);
      const recovery = gate.recover({ everyMs: 1_000 });
      await recovery.sweep();
      await recovery.stop();
      expect(log).toEqual(['kept']);
    });

    /** A participant that keeps units; `lose` makes its answers vanish after the effect. */
    function units(account: string, lose: () => boolean = () => false): Participant<number> {
      const write = (word: string) => async (sql: { query: SqlDatabase['query'] }, n: number) => {
        await sql.query('INSERT INTO effect (line) VALUES ($1)', [`${account} ${word} ${n}`]);
      };
      const local = localParticipant<number>(database, barrier, {
        async try(sql, n) {
          if (n > 100) throw refuse('TOO_MANY', 'not so many');
          await write('try')(sql, n);
          return `${account}:${n}`;
        },
        confirm: write('confirm'),
        cancel: write('cancel'),
      });
      const lossy =
        (verb: 'try' | 'confirm' | 'cancel') =>
        async (...args: Parameters<Participant<number>['try']>) => {
          const value = await local[verb](...args);
          if (lose()) throw new Error('the answer got lost');
          return value;
        };
      return { try: lossy('try'), confirm: lossy('confirm'), cancel: lossy('cancel') };
    }

    async function lines(account: string): Promise<string[]> {
      const text = 'SELECT line FROM effect WHERE line LIKE $1 ORDER BY line';
      const { rows } = await database.query(text, [`${account} %`]);
      return rows.map((row) => String(row['line']).slice(account.length + 1));
    }

    const tcc = (participants: Record<string, Participant<number>>, parts: object = {}) =>
      newGate().stagedOperation(
        defineTcc<unknown, { id: string; n: number }>({
          name: name(),
          key: ({ id }) => id,
          tryAttemptsMax: 10,
          branches: Object.entries(participants).map(([branch, participant]) => ({
            name: branch,
            participant,
            payload: ({ n }) => n,
          })),
          ...parts,
        }),
      );

    it('confirms all branches when every try succeeds', async () => {
      const [a, b] = [`a${++serial}`, `b${serial}`];
      const run = tcc({ [a]: units(a), [b]: units(b) });
      const { value } = await run({ id: 't', n: 7 });
      expect(value.outputs).toEqual({ [a]: `${a}:7`, [b]: `${b}:7` });
      expect([await lines(a), await lines(b)]).toEqual([
        ['confirm 7', 'try 7'],
        ['confirm 7', 'try 7'],
      ]);
    });

    it('cancels all branches when one refuses; the refused one keeps nothing', async () => {
      const [a, b] = [`a${++serial}`, `b${serial}`];
      const run = tcc({
        [a]: units(a),
        [b]: {
          ...units(b),
          try: () => Promise.reject(refuse('NO', 'no')),
        },
      });
      await expect(run({ id: 't', n: 7 })).rejects.toMatchObject({
        refusal: { code: 'TCC_CANCELLED', data: { branch: b } },
      });
      expect([await lines(a), await lines(b)]).toEqual([['cancel 7', 'try 7'], []]);
    });

    it('does each effect once although half of all answers get lost', async () => {
      const [a, b] = [`a${++serial}`, `b${serial}`];
      let flips = 0;
      const lose = (): boolean => flips++ % 2 === 0;
      const run = tcc({ [a]: units(a, lose), [b]: units(b, lose) });
      let value: unknown;
      for (let i = 0; i < 12 && value === undefined; i++) {
        value = await run({ id: 't', n: 3 }).then(
          (outcome) => outcome.value,
          () => undefined,
        );
      }
      expect(value).toBeDefined();
      expect([await lines(a), await lines(b)]).toEqual([
        ['confirm 3', 'try 3'],
        ['confirm 3', 'try 3'],
      ]);
    });

    it('two coordinators never work on one transaction at once', async () => {
      const a = `a${++serial}`;
      const operation = name();
      const declared = defineTcc<unknown, { id: string; n: number }>({
        name: operation,
        key: ({ id }) => id,
        branches: [{ name: a, participant: units(a), payload: ({ n }) => n }],
      });
      const runs = [newGate(), newGate(), newGate()].map((one) => one.stagedOperation(declared));
      const results = await Promise.all(
        runs.flatMap((run) => Array.from({ length: 4 }, () => run({ id: 'same', n: 1 }))),
      );
      expect(results.filter((outcome) => outcome.replayed === false)).toHaveLength(1);
      expect(await lines(a)).toEqual(['confirm 1', 'try 1']);
    });

    it('speaks to participants over HTTP, refusals included', async () => {
      const a = `h${++serial}`;
      const endpoint = participantEndpoint(units(a) as Participant<unknown>);
      const server: Server = createServer((request, response) => {
        let body = '';
        request.on('data', (chunk) => {
          body += chunk;
        });
        request.on('end', () => {
          void endpoint({ headers: request.headers, body }).then((answer) => {
            response.writeHead(answer.status, { 'content-type': 'application/json' });
            response.end(answer.body);
          });
        });
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const { port } = server.address() as { port: number };
      const remote = httpParticipant<number>({ url: `http://127.0.0.1:${port}/branch` });
      const run = tcc({ [a]: remote });
      expect((await run({ id: 'ok', n: 5 })).value.outputs).toEqual({ [a]: `${a}:5` });
      await expect(run({ id: 'too many', n: 500 })).rejects.toMatchObject({
        refusal: { code: 'TCC_CANCELLED' },
      });
      expect(await lines(a)).toEqual(['confirm 5', 'try 5']);
      server.close();
    });

    it('guards a resource for one saga at a time, and frees it by its end or its time', async () => {
      const resource = `account:${++serial}`;
      const take = (sagaId: string, holdMs = 60_000) =>
        database.transaction((sql) => takeGuard(sql, { resource, sagaId, holdMs }));
      await take('one');
      await take('one');
      await expect(take('two')).rejects.toMatchObject({ code: 'GUARDED' });
      expect(await readGuard(database, resource)).toBe('one');
      await database.transaction((sql) => releaseGuard(sql, { resource, sagaId: 'two' }));
      expect(await readGuard(database, resource)).toBe('one');
      await database.transaction((sql) => releaseGuard(sql, { resource, sagaId: 'one' }));
      await take('two');
      await database.query('UPDATE turngate_guard SET until_ms = 1 WHERE resource = $1', [
        resource,
      ]);
      expect(await readGuard(database, resource)).toBeUndefined();
      await take('three');
      expect(await readGuard(database, resource)).toBe('three');
    });
  });
});
