// Counts, which no load can change: trips and statements of a first call and of a repeat, and what
// 20 simultaneous calls of one key get.
import { openPg } from '../lib/sql-suite.mjs';
import { countWire } from '../lib/wire-count.mjs';
import { guarded } from './guarded.mjs';
import * as hand from './hand-written.mjs';
import { freshRequest, IN_FLIGHT } from './workload.mjs';

const CALLERS = 20;
const WORK_MS = 20; // Long enough for all callers to be there before the first is done.

const counter = (id, label, open) => ({ id, label, open });

export const counters = {
  id: 'counters',
  title: 'Trips, statements and 20 simultaneous calls',
  variants: [
    counter('count-bare', 'bare: BEGIN, UPDATE, COMMIT', (pool) => ({ call: hand.bare(pool) })),
    counter('count-by-hand', 'by hand: key, work, result', (pool) => ({
      call: hand.insertUpdateStore(pool, WORK_MS),
    })),
    counter('count-three-commits', 'peers: three commits', (pool) => ({
      call: hand.threeCommits(pool, WORK_MS),
    })),
    counter('count-turngate', 'Turngate, memory off', (pool) =>
      guarded(pool, { delayMs: WORK_MS }),
    ),
    counter('count-turngate-memory', 'Turngate, memory on', (pool) =>
      guarded(pool, { delayMs: WORK_MS, memory: true }),
    ),
  ],
};

/** Runs the chosen counters, each on a pool of its own. */
export async function runCounters(url, variants) {
  const rows = [];
  for (const { id, label, open } of variants) {
    const pool = openPg(url);
    const wire = countWire(pool);
    const { call, close } = open(pool);
    try {
      await openAll(pool);
      rows.push({ id, label, ...(await countOf(wire, call)) });
    } finally {
      await close?.();
      await pool.end();
    }
  }
  return rows;
}

/** Connecting takes longer than the work: with cold connections the callers would come too late. */
async function openAll(pool) {
  const clients = await Promise.all(Array.from({ length: IN_FLIGHT }, () => pool.connect()));
  for (const client of clients) client.release();
}

async function countOf(wire, call) {
  const once = freshRequest();
  const first = await wire.during(() => call(once));
  const repeat = await wire.during(() => call(once));
  const hot = freshRequest();
  const crowd = await wire.during(() =>
    Promise.allSettled(Array.from({ length: CALLERS }, () => call(hot))),
  );
  const answers = crowd.result.map(({ value }) => value).filter((value) => value !== undefined);
  return {
    first: cost(first),
    repeat: cost(repeat),
    crowd: {
      ...cost(crowd),
      callers: CALLERS,
      answered: answers.length,
      // Work that ran twice gives two balances.
      results: new Set(answers).size,
    },
  };
}

const cost = ({ trips, statements }) => ({ trips, statements });
