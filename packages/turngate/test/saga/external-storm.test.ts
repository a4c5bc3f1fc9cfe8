/**
 * The generator's random orders through the external mode, against a provider that honours keys. Of the
 * calls outside 15 in 100 go wrong: not sent, answer lost, landing only after the caller has given up, or
 * sent by a process that stood still for longer than its lease.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SqlDatabase } from '../../src/contract/sql-session.ts';
import { isTurngateError } from '../../src/core/errors.ts';
import { onEvent } from '../../src/index.ts';
import type { BranchOp } from '../../src/saga/branch.ts';
import { createExternalBarrier, type ExternalContext } from '../../src/saga/index.ts';
import { pause } from '../support/clock.ts';
import { databasesAndLevels, type OpenDatabase } from '../support/databases.ts';
import {
  chanceOf,
  checkEnded,
  gidCount,
  inLanes,
  randomJobs,
  seed,
  settleBranches,
  statesOf,
} from './generator.ts';
import { KeyedProvider } from './keyed-provider.ts';

const mishaps = ['unsent', 'answer lost', 'on its way', 'frozen'] as const;
type Mishap = (typeof mishaps)[number] | 'none';

/** Each that stands still costs its lease: few by default. */
const gids = process.env['TURNGATE_BARRIER_GIDS'] === undefined ? 60 : gidCount;
/** How late a call may land at most: well within what the barrier is told. */
const landsLateMs = 500;
const timing = { leaseMs: 100, providerLatencyMaxMs: 1_000 };
/** How a call may end beside being done. */
const codes = [
  'BUSY',
  'LEASE_LOST',
  'BRANCH_NOT_TRIED',
  'BRANCH_REFUSED',
  'BRANCH_CONFLICT',
] as const;

/** Is a call out whose lease has not ended? */
function isLive(context: ExternalContext | undefined): boolean {
  try {
    context?.assertLease();
    return context !== undefined;
  } catch {
    return false;
  }
}

describe.each(databasesAndLevels)('the external barrier on $name', (kind) => {
  describe.skipIf(kind.missing)('', () => {
    let opened: OpenDatabase;
    let database: SqlDatabase;

    beforeAll(async () => {
      opened = await kind.open(12);
      ({ database } = opened);
    });
    afterAll(() => opened?.close());

    it(`holds under random order, concurrency and failing calls (seed ${seed})`, async () => {
      const chance = chanceOf(seed);
      const { names, jobs } = randomJobs(gids, chance);
      const barrier = createExternalBarrier(database, timing);
      const provider = new KeyedProvider();
      const landing: Promise<void>[] = [];
      const cancelled = new Set<string>();
      const triedAfterCancel: string[] = [];
      const out = new Map<string, ExternalContext>();
      const overlapping: string[] = [];
      const mishap = (of: readonly Mishap[]) => of[Math.floor(chance() * of.length)] as Mishap;

      /** A call that is late lands at the worst time: right after a cancel, if there is one. */
      const landLate = async (land: () => void, { gid }: ExternalContext): Promise<void> => {
        const knownCancels = provider.times('cancel', gid);
        const endMs = Date.now() + chance() * landsLateMs;
        while (Date.now() < endMs && provider.times('cancel', gid) === knownCancels) await pause(2);
        land();
      };

      async function send(op: BranchOp, how: Mishap, context: ExternalContext): Promise<BranchOp> {
        const { gid, signal } = context;
        context.assertLease();
        if (op === 'try' && cancelled.has(gid)) triedAfterCancel.push(gid);
        if (isLive(out.get(gid))) overlapping.push(gid);
        out.set(gid, context);
        const land = () => provider.take({ op, ...context });
        try {
          if (how === 'frozen') {
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            await landLate(land, context);
            await pause(chance() * 50); // Its own row comes later still.
            return op;
          }
          await pause(chance() * 4); // On its way: others meet it there.
          if (how === 'on its way') landing.push(landLate(land, context));
          else if (how !== 'unsent') land();
          if (how !== 'none') throw new Error(how);
          return op;
        } finally {
          if (out.get(gid) === context) out.delete(gid);
        }
      }

      async function call(gid: string, op: BranchOp, how: Mishap): Promise<string> {
        try {
          const named = { gid, branch: 'b', op, payload: { units: 1 } };
          const { kind: end } = await barrier.call(named, (context) => send(op, how, context));
          if (op === 'cancel') cancelled.add(gid);
          return end;
        } catch (error) {
          const expected = isTurngateError(error)
            ? codes.some((code) => code === error.code)
            : error instanceof Error && error.message === how;
          if (!expected) throw error;
          return isTurngateError(error) ? error.code : 'failed';
        }
      }

      let again = 0;
      const forget = onEvent('saga', ({ type }) => (again += type === 'cancel-again' ? 1 : 0));
      const recancels = barrier.startRecancels(
        {
          b: (context) =>
            send('cancel', chance() < 0.15 ? mishap(['unsent', 'answer lost']) : 'none', context),
        },
        { everyMs: 50 },
      );
      try {
        await inLanes(jobs, 8, async ({ gid, op, fails }) => {
          const how = fails ? mishap(mishaps) : 'none';
          while ((await call(gid, op, how)) === 'BUSY') await pause(5 + chance() * 20);
        });
        await settleBranches(database, chance, (gid, op) => call(gid, op, 'none'));
        await Promise.all(landing);
      } finally {
        await recancels.stop();
        forget();
      }
      const states = await statesOf(database);
      // A try that never landed leaves nothing to cancel.
      const counts = checkEnded(names, states, (gid) => provider.effectsOf(gid), { CANCELLED: [] });
      expect([triedAfterCancel, overlapping]).toEqual([[], []]);
      // A small run may need none.
      if (names.length >= 500) expect(again).toBeGreaterThan(0);
      const what = `${names.length} gids, ${jobs.length} operations, ${again} second cancels`;
      const end = JSON.stringify(counts);
      process.stderr.write(`external barrier on ${kind.name}: seed ${seed}, ${what}, ${end}\n`);
    });
  });
});
