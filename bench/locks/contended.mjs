// Everybody wants one name: what a hand-over costs, in time, commands and fairness.
import { nowUs } from '../lib/clock.mjs';
import { meterBetween, pingUs, readMeter } from '../lib/redis.mjs';
import { chosenFrom } from './catalog.mjs';
import { judge } from './history.mjs';
import { medianOfRuns, withWorkers } from './runs.mjs';

const PATIENT_MS = 60_000;
const LEASE_MS = 30_000;
const VARIANTS = [
  'raw-ioredis',
  'redlock-4',
  'redlock-5',
  'sesamecare',
  'redis-semaphore',
  'universal-lean',
  'async-mutex',
  'turngate',
  'turngate-node-redis',
  'turngate-no-hand-over',
  'turngate-node-redis-no-hand-over',
];

const CASES = [
  { id: 'thousand', title: '1,000 waiters × 1 ms in one process', tasks: 1_000, insideMs: 1 },
  { id: 'thousand-empty', title: '1,000 waiters × 0 ms in one process', tasks: 1_000, insideMs: 0 },
  { id: 'four', title: '4 processes × 50 × 1 ms', processes: 4, tasks: 50, insideMs: 1 },
  {
    id: 'default-settings',
    title: '1,000 waiters × 1 ms with the settings they ship with',
    tasks: 1_000,
    insideMs: 1,
    shipped: true,
  },
];

const COLUMNS = [
  { key: 'timesIdeal', label: 'total ÷ ideal', better: 'less' },
  { key: 'commands', label: 'commands per acquisition', better: 'less' },
  { key: 'handP50', label: 'hand-off p50, trips', better: 'less' },
  { key: 'handP99', label: 'p99', better: 'less' },
  { key: 'cpuUs', label: 'Node CPU, µs', better: 'less', digits: 0 },
  { key: 'redisUs', label: 'Redis CPU, µs', better: 'less', digits: 0 },
  { key: 'inverted', label: 'out of order, %', better: 'less', digits: 0 },
  { key: 'failed', label: 'failed, %', better: 'less', digits: 0 },
  { key: 'overlaps', label: 'overlaps', better: 'less', digits: 0 },
];

const goal = (table, row, key, atMost, what) => ({ table, row, key, atMost, what });

/** The same goals for both clients; hand-over off has its own. */
function goalsOf(row, client) {
  return [
    goal('thousand', row, 'timesIdeal', 1.15, `1,000 × 1 ms, ${client}: total ÷ ideal`),
    goal('thousand', row, 'commands', 0.2, `1,000 × 1 ms, ${client}: commands per acquisition`),
    goal('thousand', row, 'inverted', 0, `1,000 × 1 ms, ${client}: out of order, %`),
    goal('thousand', row, 'failed', 0, `1,000 × 1 ms, ${client}: failed, %`),
    goal('thousand', row, 'overlaps', 0, `1,000 × 1 ms, ${client}: overlaps`),
    goal('thousand-empty', row, 'timesIdeal', 1.5, `1,000 × 0 ms, ${client}: total ÷ trips`),
    goal('four', row, 'timesIdeal', 1.35, `4 × 50 × 1 ms, ${client}: total ÷ ideal`),
    goal('four', row, 'overlaps', 0, `4 × 50 × 1 ms, ${client}: overlaps`),
  ];
}

const offGoals = (row, client) => [
  goal('thousand', row, 'commands', 2, `the same, ${client}, hand-over off: commands`),
  goal('four', row, 'timesIdeal', 2.2, `4 × 50 × 1 ms, ${client}, hand-over off: total ÷ ideal`),
];

export const contended = {
  id: 'contended',
  title: 'Contended: one name',
  names: VARIANTS,
  goals: [
    ...goalsOf('turngate', 'ioredis 5'),
    ...goalsOf('turngate-node-redis', 'node-redis'),
    ...offGoals('turngate-no-hand-over', 'ioredis 5'),
    ...offGoals('turngate-node-redis-no-hand-over', 'node-redis'),
  ],
  async run(context) {
    const tables = [];
    for (const one of CASES) {
      if (one.shipped && context.options.quick) continue;
      tables.push(await measureCase(one, context));
    }
    return tables;
  },
};

async function measureCase(one, context) {
  const { options } = context;
  const entries = chosenFrom(VARIANTS, options).filter(
    ({ local }) => !local || (one.processes ?? 1) === 1,
  );
  const rounds = options.rounds ?? (options.quick ? 1 : 3);
  const rows = await medianOfRuns(entries, rounds, context, one.title, (entry) =>
    runOnce(one, entry, context),
  );
  return {
    id: one.id,
    title: one.title,
    note: one.insideMs === 0 ? 'Ideal: one round trip per turn.' : 'Ideal: the time spent inside.',
    columns: COLUMNS,
    rows,
  };
}

async function runOnce(one, { id, sent }, { redis }) {
  const { processes = 1, tasks, insideMs, shipped } = one;
  const settings = { id, port: redis.port, leaseMs: LEASE_MS };
  if (!shipped) settings.patientMs = PATIENT_MS;
  return await withWorkers(processes, {}, async (workers) => {
    await Promise.all(workers.map((worker) => worker.ask('open', settings)));
    const tripUs = await pingUs(redis.client);
    const before = await readMeter(redis.client);
    const startUs = nowUs() + 100_000;
    const wish = { key: `hot:${startUs}`, tasks, insideMs, startUs };
    const results = await Promise.all(workers.map((worker) => worker.ask('contend', wish)));
    const used = meterBetween(before, await readMeter(redis.client), sent);
    await Promise.all(workers.map((worker) => worker.ask('close')));
    return judge({ results, used, tripUs, insideMs, tasks: tasks * processes });
  });
}
