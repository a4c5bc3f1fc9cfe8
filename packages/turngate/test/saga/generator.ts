/** Operations on branches in random order, and what must be true after them. */
import { expect } from 'vitest';
import type { SqlDatabase } from '../../src/contract/sql-session.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import type { BranchOp } from '../../src/saga/branch.ts';
import { newGid } from '../../src/saga/gid.ts';
import { until } from '../support/clock.ts';

/** How many global transactions: `TURNGATE_BARRIER_GIDS`. */
export const gidCount = Number(process.env['TURNGATE_BARRIER_GIDS'] ?? 150);
/** The same order again: `TURNGATE_SEED`. */
export const seed = Number(process.env['TURNGATE_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

/** mulberry32: the same numbers for the same seed. */
export function chanceOf(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface Job {
  readonly gid: string;
  readonly op: BranchOp;
  /** The body is to fail: in 15 of 100. */
  readonly fails: boolean;
}

/** 3 to 7 operations on each name: near in time, far in order, so that they meet each other. */
export function randomJobs(
  count: number,
  chance: () => number,
): {
  readonly names: readonly string[];
  readonly jobs: readonly Job[];
} {
  const ops: readonly BranchOp[] = ['try', 'confirm', 'cancel'];
  const names = Array.from({ length: count }, () => newGid(systemRuntime));
  const jobs = names.flatMap((gid) =>
    Array.from({ length: 3 + Math.floor(chance() * 5) }, () => ({
      gid,
      op: ops[Math.floor(chance() * 3)] as BranchOp,
      fails: chance() < 0.15,
      place: chance(),
    })).sort((a, b) => a.place - b.place),
  );
  return { names, jobs };
}

/** Runs them in so many lanes. */
export async function inLanes(
  jobs: readonly Job[],
  lanes: number,
  run: (job: Job) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let job = jobs[next++]; job !== undefined; job = jobs[next++]) await run(job);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

const effectsOf: Readonly<Record<string, readonly string[]>> = {
  none: [],
  SUSPENDED: [],
  TRIED: ['try'],
  CONFIRMED: ['confirm', 'try'],
  CANCELLED: ['cancel', 'try'],
};

/** How each branch stands; `none` is left out. */
export async function statesOf(database: SqlDatabase): Promise<ReadonlyMap<string, string>> {
  const text = "SELECT gid, state FROM turngate_branch WHERE branch = 'b'";
  const { rows } = await database.query(text, []);
  return new Map(rows.map(({ gid, state }) => [String(gid), String(state)]));
}

/**
 * The effects are those of the state: try, confirm and cancel at most once, never both ends. `orElse`:
 * what a state may show instead. Returns how many names ended in which state.
 */
export function checkEnded(
  names: readonly string[],
  states: ReadonlyMap<string, string>,
  effects: (gid: string) => readonly string[],
  orElse: Readonly<Record<string, readonly string[]>> = {},
): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const gid of names) {
    const state = states.get(gid) ?? 'none';
    counts[state] = (counts[state] ?? 0) + 1;
    const found = [...effects(gid)].sort();
    const other = orElse[state];
    if (other !== undefined && found.join() === other.join()) continue;
    expect([gid, state, found]).toEqual([gid, state, effectsOf[state]]);
  }
  // The generator reaches the states it claims to; a small run may miss one.
  expect(Object.keys(counts).length).toBeGreaterThanOrEqual(names.length < 100 ? 3 : 4);
  return counts;
}

/** Checks them in local mode, where effects are rows. */
export async function checkBranches(
  database: SqlDatabase,
  names: readonly string[],
): Promise<Readonly<Record<string, number>>> {
  const effects = new Map<string, string[]>(names.map((gid) => [gid, []]));
  const { rows } = await database.query('SELECT line FROM effect', []);
  for (const row of rows) {
    const [gid, op] = String(row['line']).split(' ') as [string, string];
    effects.get(gid)?.push(op);
  }
  return checkEnded(names, await statesOf(database), (gid) => effects.get(gid) ?? []);
}

/** Goes on with each branch whose end is not known until it is, as a coordinator would. */
export async function settleBranches(
  database: SqlDatabase,
  chance: () => number,
  ask: (gid: string, op: BranchOp) => Promise<unknown>,
): Promise<void> {
  const next = (state: string): BranchOp | undefined => {
    if (state === 'TRYING') return chance() < 0.5 ? 'try' : 'cancel';
    return state === 'CONFIRMING' ? 'confirm' : state === 'CANCELLING' ? 'cancel' : undefined;
  };
  await until(
    'every branch has ended',
    async () => {
      let open = 0;
      for (const [gid, state] of await statesOf(database)) {
        const op = next(state);
        if (op === undefined) continue;
        open++;
        await ask(gid, op);
      }
      return open === 0;
    },
    120_000,
  );
  await until(
    'no second cancel is due',
    async () => {
      const text = 'SELECT count(*) AS n FROM turngate_branch WHERE recancel_ms IS NOT NULL';
      return Number((await database.query(text, [])).rows[0]?.['n']) === 0;
    },
    120_000,
  );
}
