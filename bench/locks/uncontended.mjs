// Acquire and release on names nobody else wants, one and 64 at a time, against raw commands through
// the same client.
import { cpuMsSince } from '../lib/clock.mjs';
import { drive } from '../lib/drive.mjs';
import { interleave } from '../lib/interleave.mjs';
import { meterBetween, readMeter } from '../lib/redis.mjs';
import { ratioRows } from '../lib/tables.mjs';
import { chosenFrom } from './catalog.mjs';

const METRICS = ['opsPerSecond', 'p50Us', 'p99Us', 'cpuUsPerCall'];
const COLUMNS = [
  { key: 'p50Us', label: 'p50', better: 'less' },
  { key: 'opsPerSecond', label: 'pairs/s', better: 'more' },
  { key: 'p99Us', label: 'p99', better: 'less' },
  { key: 'cpuUsPerCall', label: 'CPU per pair', better: 'less' },
  { key: 'commands', label: 'commands per pair', better: 'less' },
];
const LEASE_MS = 30_000;

const GROUPS = [
  {
    id: 'ioredis5',
    title: 'ioredis 5',
    base: 'raw-ioredis',
    variants: [
      'redlock-4',
      'redlock-5',
      'sesamecare',
      'redis-semaphore',
      'universal',
      'universal-lean',
      'async-mutex',
      'turngate',
    ],
  },
  {
    id: 'ioredis6',
    title: 'ioredis 6',
    base: 'raw-ioredis6',
    variants: ['turngate-ioredis6'],
  },
  {
    id: 'node-redis',
    title: 'node-redis',
    base: 'raw-node-redis',
    variants: ['turngate-node-redis'],
  },
];

const goalsFor = (group, row, name) => [
  {
    what: `1 in flight, ${name}: p50 ÷ raw`,
    table: `uncontended-${group}-1`,
    row,
    key: 'p50Us',
    atMost: 1.05,
  },
  {
    what: `64 in flight, ${name}: pairs/s ÷ raw`,
    table: `uncontended-${group}-64`,
    row,
    key: 'opsPerSecond',
    atLeast: 2,
  },
  {
    what: `64 in flight, ${name}: CPU per pair ÷ raw`,
    table: `uncontended-${group}-64`,
    row,
    key: 'cpuUsPerCall',
    atMost: 0.45,
  },
];

export const uncontended = {
  id: 'uncontended',
  title: 'Uncontended: acquire and release',
  names: GROUPS.flatMap(({ base, variants }) => [base, ...variants]),
  goals: [
    ...goalsFor('ioredis5', 'turngate', 'ioredis 5'),
    ...goalsFor('ioredis6', 'turngate-ioredis6', 'ioredis 6'),
    ...goalsFor('node-redis', 'turngate-node-redis', 'node-redis'),
  ],
  async run(context) {
    const tables = [];
    for (const group of GROUPS) tables.push(...(await measureGroup(group, context)));
    return tables;
  },
};

async function measureGroup(group, context) {
  const { redis, options, signal, say } = context;
  const chosen = chosenFrom([group.base, ...group.variants], options, [group.base]);
  if (chosen.length < 2) return [];
  const locks = [];
  try {
    for (const entry of chosen) {
      const adapter = await entry.adapter();
      locks.push({ entry, lock: await adapter.open({ port: redis.port, leaseMs: LEASE_MS }) });
    }
    const tables = [];
    for (const [inFlight, calls] of [
      [1, options.quick ? 200 : 400],
      [64, options.quick ? 1_500 : 2_500],
    ]) {
      signal.throwIfAborted();
      const title = `Uncontended, ${group.title}, ${inFlight} in flight`;
      const onRound = (round) => say(`${title}: round ${round}`);
      const run = { inFlight, calls, onRound };
      const rows = await interleaved(locks, group.base, run, context);
      tables.push({
        id: `uncontended-${group.id}-${inFlight}`,
        title,
        note: `Ratios to ${rows[0].label}.`,
        columns: COLUMNS,
        rows,
      });
    }
    return tables;
  } finally {
    for (const { lock } of locks) await lock.close();
  }
}

async function interleaved(locks, baseId, { inFlight, calls, onRound }, context) {
  const { redis, options, signal } = context;
  let serial = 0;
  const commands = new Map();
  const variants = locks.map(({ entry: { id, label, local }, lock }) => {
    const call = async () => {
      const release = await lock.acquire(`pair:${inFlight}:${id}:${serial++}`);
      await release();
    };
    return { id, label, bound: local, slice: () => sliceOf(call, inFlight, calls) };
  });
  for (const [i, { slice }] of variants.entries()) {
    await slice(); // Connections, scripts, compiled code.
    const before = await readMeter(redis.client);
    await slice();
    const after = await readMeter(redis.client);
    const used = meterBetween(before, after, locks[i].entry.sent);
    commands.set(variants[i].id, used.commands / calls);
  }
  const rounds = options.rounds ?? (options.quick ? 7 : 21);
  const base = variants.find(({ id }) => id === baseId);
  const others = variants.filter(({ id }) => id !== baseId);
  const order = { base, variants: others, rounds, signal, onRound, metrics: METRICS };
  return ratioRows(await interleave(order), (id) => ({ commands: commands.get(id) }));
}

async function sliceOf(call, inFlight, calls) {
  const before = process.cpuUsage();
  const result = await drive({ calls, inFlight, call });
  return { ...result, cpuUsPerCall: (1_000 * cpuMsSince(before)) / calls };
}
