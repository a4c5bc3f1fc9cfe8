/** The barrier's external mode: each cell of its table, crashes between call and row, second cancels. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { SqlDatabase } from '../../src/contract/sql-session.ts';
import { isTurngateError } from '../../src/core/errors.ts';
import { onEvent, refuse } from '../../src/index.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import type { BranchOp } from '../../src/saga/branch.ts';
import { gidAt, newGid } from '../../src/saga/gid.ts';
import {
  createBarrier,
  createExternalBarrier,
  type ExternalContext,
  externalParticipant,
} from '../../src/saga/index.ts';
import { door, ManualRuntime, until } from '../support/clock.ts';
import { KeyedProvider } from './keyed-provider.ts';
import { type Opened, targets } from './targets.ts';

/** Row → try, confirm, cancel: how the call ends, and the state after it. `ran`: the body was called. */
const cells: Record<string, readonly [string, string, string]> = {
  none: ['ran TRIED', 'BRANCH_NOT_TRIED none', 'empty SUSPENDED'],
  'TRYING, lease live': ['BUSY TRYING', 'BRANCH_NOT_TRIED TRYING', 'BUSY TRYING'],
  'TRYING, lease over': ['ran TRIED', 'BRANCH_NOT_TRIED TRYING', 'ran CANCELLED'],
  TRIED: ['replayed TRIED', 'ran CONFIRMED', 'ran CANCELLED'],
  'CONFIRMING, lease live': [
    'BRANCH_REFUSED CONFIRMING',
    'BUSY CONFIRMING',
    'BRANCH_CONFLICT CONFIRMING',
  ],
  'CONFIRMING, lease over': [
    'BRANCH_REFUSED CONFIRMING',
    'ran CONFIRMED',
    'BRANCH_CONFLICT CONFIRMING',
  ],
  CONFIRMED: ['replayed CONFIRMED', 'replayed CONFIRMED', 'BRANCH_CONFLICT CONFIRMED'],
  'CANCELLING, lease live': [
    'BRANCH_REFUSED CANCELLING',
    'BRANCH_CONFLICT CANCELLING',
    'BUSY CANCELLING',
  ],
  'CANCELLING, lease over': [
    'BRANCH_REFUSED CANCELLING',
    'BRANCH_CONFLICT CANCELLING',
    'ran CANCELLED',
  ],
  CANCELLED: ['BRANCH_REFUSED CANCELLED', 'BRANCH_CONFLICT CANCELLED', 'replayed CANCELLED'],
  SUSPENDED: ['BRANCH_REFUSED SUSPENDED', 'BRANCH_CONFLICT SUSPENDED', 'replayed SUSPENDED'],
};
const ops: readonly BranchOp[] = ['try', 'confirm', 'cancel'];
const table = Object.entries(cells).flatMap(([row, ends]) =>
  ops.map((op, i) => ({ row, op, end: ends[i] as string })),
);

describe.each(targets)('the external barrier on $name', (kind) => {
  describe.skipIf(kind.missing)('', () => {
    let opened: Opened;
    let database: SqlDatabase;
    let barrier: ReturnType<typeof createExternalBarrier>;
    const stuck: { open(): void; ended: Promise<unknown> }[] = [];

    beforeAll(async () => {
      opened = await kind.open();
      ({ database } = opened);
      barrier = createExternalBarrier(database);
    });
    afterEach(async () => {
      for (const { open, ended } of stuck.splice(0)) {
        open();
        await ended;
      }
    });
    afterAll(() => opened?.close());

    const fresh = () => ({ gid: newGid(systemRuntime), branch: 'b' });
    type Name = ReturnType<typeof fresh>;
    const set = async ({ gid }: Name, text: string) =>
      void (await database.query(`UPDATE turngate_branch SET ${text} WHERE gid = $1`, [gid]));
    const endLease = (name: Name) => set(name, 'lease_until_ms = 1');
    const makeRecancelDue = (name: Name) =>
      set(name, 'recancel_ms = CASE WHEN recancel_ms IS NULL THEN NULL ELSE 1 END');
    async function column({ gid }: Name, what: string): Promise<unknown> {
      const text = `SELECT ${what} AS found FROM turngate_branch WHERE gid = $1`;
      return (await database.query(text, [gid])).rows[0]?.['found'];
    }
    const state = async (name: Name) => String((await column(name, 'state')) ?? 'none');

    /** Kind or code of a call. */
    async function end(
      name: Name,
      op: BranchOp,
      body: (context: ExternalContext) => Promise<unknown> = async () => op,
    ): Promise<string> {
      try {
        return (await barrier.call({ ...name, op }, body)).kind;
      } catch (error) {
        return isTurngateError(error) ? error.code : (error as Error).message;
      }
    }

    /** A call whose process stands still once it has called the provider, until the test ends. */
    async function standStill(
      name: Name,
      op: BranchOp,
      send: (context: ExternalContext) => void = () => undefined,
      fails = false,
    ) {
      const inside = door();
      const out = door();
      const ended = end(name, op, async (context) => {
        send(context);
        inside.open();
        await out.opened;
        if (fails) throw new Error('cut off');
      });
      const call = { open: () => out.open(), ended };
      stuck.push(call);
      await Promise.race([inside.opened, ended]);
      return call;
    }

    async function arrange(name: Name, row: string): Promise<void> {
      const [word = '', lease] = row.split(', lease ');
      if (word === 'SUSPENDED') return void (await end(name, 'cancel'));
      if (['TRIED', 'CONFIRMED', 'CANCELLED', 'CONFIRMING', 'CANCELLING'].includes(word)) {
        await end(name, 'try');
      }
      if (word === 'CONFIRMED') await end(name, 'confirm');
      if (word === 'CANCELLED') await end(name, 'cancel');
      if (word === 'TRYING') await standStill(name, 'try');
      if (word === 'CONFIRMING') await standStill(name, 'confirm');
      if (word === 'CANCELLING') await standStill(name, 'cancel');
      if (lease === 'over') await endLease(name);
    }

    it.each(table)('$row: $op → $end', async ({ row, op, end: expected }) => {
      const name = fresh();
      await arrange(name, row);
      let calls = 0;
      const found = await end(name, op, async () => ++calls);
      expect([`${found} ${await state(name)}`, calls]).toEqual([
        expected,
        expected.startsWith('ran') ? 1 : 0,
      ]);
    });

    it('tells when a call that is out must have ended', async () => {
      const name = fresh();
      await standStill(name, 'try');
      const busy = barrier.call({ ...name, op: 'cancel' }, async () => undefined);
      await expect(busy).rejects.toMatchObject({ code: 'BUSY', outcome: 'unknown' });
      const { retryAfterMs } = await busy.catch((error) => error);
      expect(retryAfterMs).toBeGreaterThan(0);
      expect(retryAfterMs).toBeLessThanOrEqual(60_000);
    });

    it('repeats a call whose process died before its row under the same key: one effect', async () => {
      const provider = new KeyedProvider();
      const name = fresh();
      const reserve = (context: ExternalContext): void => provider.take({ op: 'try', ...context });
      const dead = await standStill(name, 'try', reserve);
      await endLease(name);
      expect(await end(name, 'try', async (context) => reserve(context))).toBe('ran');
      const [first, second] = provider.asked;
      expect([provider.asked.length, second, provider.held.size]).toEqual([2, first, 1]);
      dead.open(); // It was not dead: what it brings is dropped.
      expect(await dead.ended).toBe('LEASE_LOST');
      expect(await state(name)).toBe('TRIED');
    });

    it('drops what an attempt brings, or its failure, while the next one is still out', async () => {
      for (const fails of [false, true]) {
        const name = fresh();
        const lost = await standStill(name, 'try', () => undefined, fails);
        await endLease(name);
        const next = await standStill(name, 'try');
        lost.open();
        expect(await lost.ended).toBe(fails ? 'cut off' : 'LEASE_LOST');
        expect([await state(name), await end(name, 'cancel')]).toEqual(['TRYING', 'BUSY']);
        next.open();
        expect([await next.ended, await state(name)]).toEqual(['ran', 'TRIED']);
      }
    });

    it('takes over by itself when the lease is over, never before', async () => {
      const short = createExternalBarrier(database, { leaseMs: 300 });
      const name = { ...fresh(), op: 'try' } as const;
      const out = door();
      const startMs = Date.now();
      const first = short.call(name, () => out.opened);
      await until('the try is out', async () => (await state(name)) === 'TRYING');
      await until('another takes over', async () => {
        try {
          return (await short.call(name, async () => 'second')).kind === 'ran';
        } catch (error) {
          if (isTurngateError(error, 'BUSY')) return false;
          throw error;
        }
      });
      expect(Date.now() - startMs).toBeGreaterThanOrEqual(290);
      out.open();
      await expect(first).rejects.toMatchObject({ code: 'LEASE_LOST' });
      expect(await short.call(name, async () => 'third')).toMatchObject({
        kind: 'replayed',
        value: 'second',
      });
    });

    it('lets one of eight callers at once call the provider', async () => {
      for (const [op, before] of [['try'], ['confirm', 'try'], ['cancel', 'try']] as const) {
        const name = fresh();
        if (before !== undefined) await end(name, before);
        const out = door();
        let calls = 0;
        const all = Array.from({ length: 8 }, () =>
          end(name, op, async () => {
            calls++;
            await out.opened;
          }),
        );
        const ended = Promise.all(all);
        let others = 0;
        for (const one of all) void one.then((found) => (others += found === 'BUSY' ? 1 : 0));
        await until('seven were sent away', () => others === 7);
        out.open();
        expect((await ended).filter((found) => found === 'ran')).toHaveLength(1);
        expect(calls).toBe(1);
      }
    });

    it('cancels a try that called the provider and threw, once (seata#6374)', async () => {
      const provider = new KeyedProvider();
      const participant = externalParticipant<number>(barrier, {
        async try(_units, context) {
          provider.take({ op: 'try', ...context });
          throw new Error('the answer was cut off');
        },
        confirm: async () => undefined,
        cancel: async (_units, context) => provider.take({ op: 'cancel', ...context }),
      });
      const context = { ...fresh(), signal: new AbortController().signal };
      await expect(participant.try(1, context)).rejects.toThrow('cut off');
      await participant.cancel(1, context);
      await participant.cancel(1, context);
      expect([provider.times('cancel'), provider.held.size]).toEqual([1, 0]);
      const late = participant.try(1, context);
      await expect(late).rejects.toMatchObject({ refusal: { code: 'BRANCH_REFUSED' } });
      expect(provider.times('try')).toBe(1);
    });

    it('leaves nothing of a first try that is refused; a later refusal proves nothing', async () => {
      const no = async (): Promise<void> => {
        throw refuse('NO_ROOM', 'no');
      };
      const name = fresh();
      expect(await end(name, 'try', no)).toBe('REFUSED');
      expect([await state(name), await end(name, 'cancel')]).toEqual(['none', 'empty']);
      const other = fresh();
      await standStill(other, 'try');
      await endLease(other);
      expect(await end(other, 'try', no)).toBe('REFUSED');
      expect([await state(other), await end(other, 'cancel')]).toEqual(['TRYING', 'ran']);
    });

    it('runs a confirm or a cancel that threw again, under its own constant key', async () => {
      for (const op of ['confirm', 'cancel'] as const) {
        const name = fresh();
        const keys: string[] = [];
        await end(name, 'try', async ({ providerKey }) => void keys.push(providerKey));
        const tell = async ({ providerKey, tryKey }: ExternalContext): Promise<void> => {
          keys.push(`${tryKey} ${providerKey}`);
          if (keys.length === 2) throw new Error('cut off');
        };
        expect([await end(name, op, tell), await end(name, op, tell)]).toEqual(['cut off', 'ran']);
        const [tryKey, first, second] = keys;
        expect(first?.startsWith(`${tryKey} `)).toBe(true);
        expect([second, first?.endsWith(String(tryKey))]).toEqual([first, false]);
      }
    });

    it('sends a second cancel after a try in doubt, once, under a key of its own, when it is due', async () => {
      const provider = new KeyedProvider();
      const free = async (context: ExternalContext): Promise<void> =>
        provider.take({ op: 'cancel', ...context });
      const name = { ...fresh(), branch: 'in-doubt' };
      const sent: ExternalContext[] = [];
      const lost = await standStill(name, 'try', (context) => void sent.push(context));
      await endLease(name);
      expect(await end(name, 'cancel', free)).toBe('ran');
      expect(await barrier.recancel('in-doubt', free)).toBe(0);
      provider.take({ op: 'try', ...(sent[0] as ExternalContext) }); // Lands only now.
      await makeRecancelDue(name);
      expect(await barrier.recancel('other', free)).toBe(0);
      const both = [barrier.recancel('in-doubt', free), barrier.recancel('in-doubt', free)];
      expect((await Promise.all(both)).sort()).toEqual([0, 1]);
      expect([provider.times('cancel'), provider.held.size]).toEqual([2, 0]);
      lost.open(); // It comes to its end after all: one more is due at once.
      expect(await lost.ended).toBe('LEASE_LOST');
      expect([await barrier.recancel('in-doubt', free), provider.times('cancel')]).toEqual([1, 3]);
      expect([await barrier.recancel('in-doubt', free), await state(name)]).toEqual([
        0,
        'CANCELLED',
      ]);
      const cancels = provider.asked.filter((line) => line.startsWith('cancel '));
      expect(new Set(cancels).size).toBe(3);
    });

    describe('second cancels that are sent by themselves', () => {
      /** A cancelled branch whose try is in doubt, its second cancel due. */
      async function inDoubt(branch: string): Promise<Name> {
        const name = { ...fresh(), branch };
        await standStill(name, 'try');
        await endLease(name);
        await end(name, 'cancel');
        await makeRecancelDue(name);
        return name;
      }
      const isDue = async (name: Name) => (await column(name, 'recancel_ms')) !== null;

      it('come for each branch; one that fails is told and does not keep the others', async () => {
        const names = [await inDoubt('loop-a'), await inDoubt('loop-b'), await inDoubt('loop-b')];
        const failed: unknown[] = [];
        const forget = onEvent('saga', (event) => {
          if (event.type === 'recancel-failed') failed.push([event.branch, event.error]);
        });
        const down = new Error('the provider is down');
        const sent: string[] = [];
        const recancels = barrier.startRecancels(
          {
            'loop-a': async () => {
              throw down;
            },
            'loop-b': async ({ gid }) => void sent.push(gid),
          },
          { everyMs: 50 },
        );
        try {
          await until('the second cancels are out', () => sent.length === 2);
          await until('both are done', async () => !(await isDue(names[2] as Name)));
          expect([failed, await isDue(names[0] as Name)]).toEqual([[['loop-a', down]], true]);
          await makeRecancelDue(names[0] as Name); // As when its lease is over.
          await until('it is tried again', () => failed.length === 2);
        } finally {
          await recancels.stop();
          forget();
        }
      });

      it('end after the call at hand, and leave no timer behind', async () => {
        const runtime = new ManualRuntime();
        const own = createExternalBarrier(database, { runtime });
        const names = [await inDoubt('stopped'), await inDoubt('stopped')];
        const inside = door();
        const out = door();
        let calls = 0;
        const recancels = own.startRecancels({
          stopped: async () => {
            calls++;
            inside.open();
            await out.opened;
          },
        });
        const swept = recancels.sweep();
        await inside.opened;
        const stopped = recancels.stop();
        out.open();
        await stopped;
        expect([await swept, calls, runtime.pendingTimers]).toEqual([1, 1, 0]);
        const due = await Promise.all(names.map(isDue));
        expect(due.filter(Boolean)).toHaveLength(1);
      });

      it('are told when the database is away, and go on', async () => {
        const away = createExternalBarrier({
          ...database,
          query: async () => {
            throw new Error('the database is away');
          },
        });
        const told: unknown[] = [];
        const forget = onEvent('saga', ({ type, branch }) => told.push([type, branch]));
        const recancels = away.startRecancels({ b: async () => undefined }, { everyMs: 50 });
        await until('it was told twice', () => told.length >= 2);
        await recancels.stop();
        forget();
        expect(told[0]).toEqual(['recancel-failed', 'b']);
        for (const wrong of [{}, { b: 'no' as never }]) {
          expect(() => away.startRecancels(wrong)).toThrow(/cancel/);
        }
      });
    });

    it('keeps a second cancel due while it fails, none for a try whose end is known', async () => {
      const name = { ...fresh(), branch: 'failing' };
      await standStill(name, 'try');
      await endLease(name);
      await end(name, 'cancel');
      await makeRecancelDue(name);
      const fails = async (): Promise<void> => {
        throw new Error('the provider is down');
      };
      expect(await barrier.recancel('failing', fails)).toBe(0);
      await makeRecancelDue(name);
      expect(await barrier.recancel('failing', async () => undefined)).toBe(1);
      const known = fresh();
      await end(known, 'try');
      await end(known, 'cancel');
      expect(await column(known, 'recancel_ms')).toBeNull();
    });

    it('keeps a second cancel due that a late try or a slower sweeper has overtaken', async () => {
      const name = { ...fresh(), branch: 'overtaken' };
      const lost = await standStill(name, 'try');
      await endLease(name);
      await end(name, 'cancel');
      await makeRecancelDue(name);
      /** A sweeper that stands still in its call. */
      const sweep = async (fails: boolean) => {
        const inside = door();
        const out = door();
        const ended = barrier.recancel('overtaken', async () => {
          inside.open();
          await out.opened;
          if (fails) throw new Error('the provider is down');
        });
        await Promise.race([inside.opened, ended]);
        return { open: () => out.open(), ended };
      };
      const slow = await sweep(false);
      await makeRecancelDue(name); // As when its lease is over.
      const next = await sweep(true);
      slow.open();
      await slow.ended;
      next.open();
      expect(await next.ended).toBe(0);
      await makeRecancelDue(name);
      const third = await sweep(false);
      lost.open();
      await lost.ended;
      third.open();
      expect(await third.ended).toBe(1);
      expect(await barrier.recancel('overtaken', async () => undefined)).toBe(1);
      expect(await barrier.recancel('overtaken', async () => undefined)).toBe(0);
    });

    it('ends the signal with the lease and says so', async () => {
      const short = createExternalBarrier(database, { leaseMs: 100 });
      const lost = short.call({ ...fresh(), op: 'try' }, async ({ signal, assertLease }) => {
        await until('the signal aborts', () => signal.aborted);
        assertLease();
      });
      await expect(lost).rejects.toMatchObject({ code: 'LEASE_LOST' });
    });

    it('does not take a result it cannot keep for nothing', async () => {
      const name = fresh();
      const odd = barrier.call({ ...name, op: 'try' }, async () => () => 1);
      await expect(odd).rejects.toMatchObject({ code: 'RESULT_INVALID', outcome: 'applied' });
      expect([await state(name), await end(name, 'cancel')]).toEqual(['TRYING', 'ran']);
    });

    it('refuses another payload, an old name, and a branch of the other mode', async () => {
      const name = { ...fresh(), op: 'try' } as const;
      await barrier.call({ ...name, payload: 1 }, async () => undefined);
      const other = barrier.call({ ...name, payload: 2 }, async () => undefined);
      await expect(other).rejects.toMatchObject({ code: 'BRANCH_MISMATCH' });
      const gid = gidAt(Date.now() - 31 * 86_400_000, 'old');
      expect(await end({ gid, branch: 'b' }, 'try')).toBe('GID_EXPIRED');
      const local = createBarrier();
      for (const op of ops) {
        const crossed = database.transaction((sql) =>
          local.call(sql, { ...name, op, payload: 1 }, async () => undefined),
        );
        await expect(crossed).rejects.toMatchObject({ code: 'BRANCH_MISMATCH' });
      }
      const inside = fresh();
      await database.transaction((sql) =>
        local.call(sql, { ...inside, op: 'try' }, async () => undefined),
      );
      for (const op of ops) expect(await end(inside, op)).toBe('BRANCH_MISMATCH');
    });

    it('purges old final rows, none that is out, tried, or has a cancel due', async () => {
      const rows = ['TRIED', 'CONFIRMED', 'CANCELLED', 'SUSPENDED', 'TRYING, lease over'];
      const names = new Map(rows.map((row) => [row, fresh()]));
      for (const [row, name] of names) await arrange(name, row);
      const due = fresh();
      await arrange(due, 'TRYING, lease over');
      await end(due, 'cancel');
      const past = (name: Name): Name => ({ ...name, gid: gidAt(0, name.gid.slice(11)) });
      for (const name of [...names.values(), due]) await set(name, `gid = '${past(name).gid}'`);
      await barrier.purge();
      const left = [];
      for (const [row, name] of names) if ((await state(past(name))) !== 'none') left.push(row);
      expect([left, await state(past(due))]).toEqual([
        ['TRIED', 'TRYING, lease over'],
        'CANCELLED',
      ]);
    });
  });
});
