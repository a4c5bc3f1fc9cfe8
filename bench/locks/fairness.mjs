// A closed loop: 4 processes × 8 tasks take the same lock again and again. Shows who starves.
import { nowUs } from '../lib/clock.mjs';
import { quantile } from '../lib/drive.mjs';
import { meterBetween, readMeter } from '../lib/redis.mjs';
import { chosenFrom } from './catalog.mjs';
import { overlapsIn, turnsOf } from './history.mjs';
import { medianOfRuns, withWorkers } from './runs.mjs';

const PROCESSES = 4;
const TASKS = 8;
const VARIANTS = [
  'raw-ioredis',
  'redlock-4',
  'redlock-5',
  'sesamecare',
  'redis-semaphore',
  'universal-lean',
  'turngate',
  'turngate-node-redis',
  'turngate-no-hand-over',
];

const goalsOf = (row, client) => [
  {
    table: 'fairness',
    row,
    key: 'jain',
    atLeast: 0.99,
    what: `closed loop, ${client}: Jain index`,
  },
  {
    table: 'fairness',
    row,
    key: 'waitP99',
    atMost: 2.5,
    what: `closed loop, ${client}: p99 wait in turns`,
  },
  {
    table: 'fairness',
    row,
    key: 'timesBest',
    atLeast: 1.25,
    what: `closed loop, ${client}: acquisitions ÷ best polling peer`,
  },
  { table: 'fairness', row, key: 'overlaps', atMost: 0, what: `closed loop, ${client}: overlaps` },
];

export const fairness = {
  id: 'fairness',
  title: 'Closed loop: 4 processes × 8 tasks',
  names: VARIANTS,
  goals: [...goalsOf('turngate', 'ioredis 5'), ...goalsOf('turngate-node-redis', 'node-redis')],
  async run(context) {
    const { options } = context;
    const entries = chosenFrom(VARIANTS, options);
    const rounds = options.rounds ?? (options.quick ? 1 : 3);
    const title = 'Closed loop: 4 processes × 8 tasks × 1 ms, for 3 s';
    const rows = await medianOfRuns(entries, rounds, context, title, (entry) =>
      runOnce(entry, context),
    );
    const polling = rows.filter(({ ours, id }) => !ours && id !== 'raw-ioredis');
    const best = Math.max(...polling.map(({ values }) => values.acquisitions));
    if (polling.length > 0) {
      for (const { values } of rows) values.timesBest = values.acquisitions / best;
    }
    const note = 'A turn is 32 times what was spent inside on average.';
    return [{ id: 'fairness', title, note, columns: COLUMNS, rows }];
  },
};

const COLUMNS = [
  { key: 'timesBest', label: 'acquisitions ÷ best peer', better: 'more' },
  { key: 'jain', label: 'Jain index', better: 'more', digits: 3 },
  { key: 'least', label: 'least per task', digits: 0 },
  { key: 'most', label: 'most', digits: 0 },
  { key: 'waitP99', label: 'p99 wait, turns', better: 'less' },
  { key: 'waitMax', label: 'longest', better: 'less' },
  { key: 'commands', label: 'commands per acquisition', better: 'less' },
  { key: 'overlaps', label: 'overlaps', better: 'less', digits: 0 },
];

async function runOnce({ id, sent }, { redis }) {
  const settings = { id, port: redis.port, leaseMs: 30_000, patientMs: 60_000 };
  return await withWorkers(PROCESSES, {}, async (workers) => {
    await Promise.all(workers.map((worker) => worker.ask('open', settings)));
    const before = await readMeter(redis.client);
    const startUs = nowUs() + 100_000;
    const wish = { tasks: TASKS, insideMs: 1, startUs, untilUs: startUs + 3_000_000 };
    const asked = workers.map((worker) =>
      worker.ask('contend', { key: `loop:${startUs}`, ...wish }),
    );
    const results = await Promise.all(asked);
    const used = meterBetween(before, await readMeter(redis.client), sent);
    await Promise.all(workers.map((worker) => worker.ask('close')));
    return figuresOf(results, used);
  });
}

function figuresOf(results, { commands }) {
  const turns = turnsOf(results);
  const counts = new Array(PROCESSES * TASKS).fill(0);
  for (const { process, task } of turns) counts[process * TASKS + task]++;
  const insideUs = turns.reduce((sum, { gotUs, endUs }) => sum + endUs - gotUs, 0) / turns.length;
  const waits = turns.map(({ askedUs, gotUs }) => (gotUs - askedUs) / (counts.length * insideUs));
  const squares = counts.reduce((sum, count) => sum + count * count, 0);
  return {
    acquisitions: turns.length,
    jain: turns.length ** 2 / (counts.length * squares),
    least: Math.min(...counts),
    most: Math.max(...counts),
    waitP99: quantile(waits, 0.99),
    waitMax: quantile(waits, 1),
    commands: commands / turns.length,
    overlaps: overlapsIn(turns),
    failed: results.reduce((sum, { failures }) => sum + Object.keys(failures).length, 0),
  };
}
