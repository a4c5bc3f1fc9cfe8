// Releasing a lock whose lease has ended: how long it takes, and what the caller is told.
import { setTimeout as sleep } from 'node:timers/promises';
import { meterBetween, readMeter } from '../lib/redis.mjs';
import { chosenFrom } from './catalog.mjs';

const LEASE_MS = 300;
const VARIANTS = [
  'raw-ioredis',
  'redlock-4',
  'redlock-5',
  'sesamecare',
  'redis-semaphore',
  'universal-lean',
  'turngate',
  'turngate-node-redis',
];
const COLUMNS = [
  { key: 'tookMs', label: 'release took, ms', better: 'less' },
  { key: 'commands', label: 'commands', better: 'less', digits: 0 },
  { key: 'answer', label: 'what the caller is told' },
];

const goal = (row, client) => ({
  table: 'expired',
  row,
  key: 'commands',
  atMost: 1,
  what: `release of an expired lock, ${client}: commands`,
});

export const expired = {
  id: 'expired',
  title: 'Releasing an expired lock',
  names: VARIANTS,
  goals: [goal('turngate', 'ioredis 5'), goal('turngate-node-redis', 'node-redis')],
  async run({ redis, options, signal, say }) {
    const rows = [];
    for (const { id, label, ours, sent, adapter } of chosenFrom(VARIANTS, options)) {
      signal.throwIfAborted();
      say(`releasing an expired lock: ${id}`);
      const values = await releaseLate(await adapter(), sent, redis);
      rows.push({ id, label, ours, values });
    }
    return [{ id: 'expired', title: this.title, columns: COLUMNS, rows }];
  },
};

async function releaseLate(adapter, sent, redis) {
  const lock = await adapter.open({ port: redis.port, leaseMs: LEASE_MS, renew: false });
  try {
    await (await lock.acquire('late:warm'))();
    const release = await lock.acquire('late');
    await sleep(2 * LEASE_MS);
    const before = await readMeter(redis.client);
    const startMs = performance.now();
    const answer = await release().then(told, (error) => `rejects: ${error.code ?? error.name}`);
    const tookMs = performance.now() - startMs;
    await sleep(50); // Whatever still goes on in the background counts too.
    const { commands } = meterBetween(before, await readMeter(redis.client), sent);
    return { tookMs, commands, answer };
  } finally {
    await lock.close();
  }
}

function told(value) {
  if (value === undefined) return 'nothing';
  if (typeof value === 'object') return 'an object';
  return `\`${value}\``;
}
