// Ten thousand locks held and renewed: processor time, commands, timers, heap, stalls, losses.
import { meterBetween, readMeter } from '../lib/redis.mjs';
import { chosenFrom } from './catalog.mjs';
import { medianOfRuns, withWorkers } from './runs.mjs';

const LOCKS = 10_000;
const LEASE_MS = 6_000;
const EVERY_MS = 2_000;
const VARIANTS = [
  'idle',
  'raw-ioredis',
  'redlock-5',
  'sesamecare',
  'redis-semaphore',
  'universal-lean',
  'turngate',
  'turngate-node-redis',
];
const COLUMNS = [
  { key: 'nodeCpu', label: 'Node CPU ÷ raw', better: 'less' },
  { key: 'redisCpu', label: 'Redis CPU ÷ raw', better: 'less' },
  { key: 'perLock', label: 'commands per lock and period', better: 'less' },
  { key: 'timers', label: 'timers', better: 'less', digits: 0 },
  { key: 'heapKb', label: 'heap per lock, KB', better: 'less' },
  { key: 'addedStallMs', label: 'added longest stall, ms', better: 'less', digits: 1 },
  { key: 'lost', label: 'lost', better: 'less', digits: 0 },
];

function goalsOf(row, client) {
  const goal = (key, atMost, what) => {
    return { table: 'hold', row, key, atMost, what: `10,000 held, ${client}: ${what}` };
  };
  return [
    goal('perLock', 0.02, 'commands per lock and period'),
    goal('nodeCpu', 0.25, 'Node CPU ÷ one script per key'),
    goal('redisCpu', 0.45, 'Redis CPU ÷ one script per key'),
    goal('timers', 4, 'timers'),
    goal('heapKb', 0.8, 'heap per lock, KB'),
    goal('addedStallMs', 10, 'added loop stall, ms'),
    goal('lost', 0, 'lost in 5 leases'),
  ];
}

export const hold = {
  id: 'hold',
  title: 'Holding 10,000 locks',
  names: VARIANTS,
  goals: [...goalsOf('turngate', 'ioredis 5'), ...goalsOf('turngate-node-redis', 'node-redis')],
  async run(context) {
    const { options } = context;
    const bases = ['idle', 'raw-ioredis'];
    const entries = chosenFrom(VARIANTS, options, bases);
    const rounds = options.rounds ?? (options.quick ? 1 : 2);
    const leases = options.quick ? 2 : 5;
    const title = `${LOCKS.toLocaleString('en-US')} locks held for ${leases} leases of 6 s`;
    const rows = await medianOfRuns(entries, rounds, context, title, (entry) =>
      runOnce(entry, leases * LEASE_MS, context),
    );
    return [{ id: 'hold', title, note: NOTE, columns: COLUMNS, rows: related(rows) }];
  },
};

const NOTE =
  'Everybody renews every 2 s. Processor time of an idle process with as many keys is taken off, then divided by one script per key on one timer.';

async function runOnce({ id, sent }, forMs, { redis }) {
  const terms = { id, port: redis.port, count: LOCKS, leaseMs: LEASE_MS, everyMs: EVERY_MS };
  await redis.client.flushdb();
  const timers = await withWorkers(1, {}, ([worker]) => worker.ask('countTimers', terms));
  await redis.client.flushdb();
  return await withWorkers(1, { execArgv: ['--expose-gc'] }, async ([worker]) => {
    const { heapBytes } = await worker.ask('hold', terms);
    const before = await readMeter(redis.client);
    const watched = await worker.ask('watch', { forMs });
    const used = meterBetween(before, await readMeter(redis.client), sent);
    const lost = await worker.ask('stopHolding');
    return {
      nodeCpuMs: watched.cpuMs,
      redisCpuMs: used.cpuMs,
      perLock: used.commands / (LOCKS * (forMs / EVERY_MS)),
      timers,
      heapKb: heapBytes / 1_024,
      stallMs: watched.stallMs,
      lost,
    };
  });
}

/** What the process costs anyway is taken off; the rest is divided by the raw renewals. */
function related(rows) {
  const of = (id) => rows.find((row) => row.id === id).values;
  const none = of('idle');
  const raw = of('raw-ioredis');
  const share = (key, values) => (values[key] - none[key]) / (raw[key] - none[key]);
  return rows.map(({ values, ...row }) => ({
    ...row,
    bound: row.bound || row.id === 'idle' || row.id === 'raw-ioredis',
    values: {
      ...values,
      nodeCpu: share('nodeCpuMs', values),
      redisCpu: share('redisCpuMs', values),
      addedStallMs: values.stallMs - none.stallMs,
    },
  }));
}
