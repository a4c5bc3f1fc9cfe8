// What one waiter costs while somebody else keeps the lock.
import { setTimeout as sleep } from 'node:timers/promises';
import { nowUs } from '../lib/clock.mjs';
import { meterBetween, readMeter } from '../lib/redis.mjs';
import { chosenFrom } from './catalog.mjs';
import { medianOfRuns, withWorkers } from './runs.mjs';

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
const WINDOW_MS = 8_000;
/** Renewals of the holder come less often than a window is long. */
const LEASE_MS = 300_000;

const goal = (row, client) => ({
  table: 'idle-waiter',
  row,
  key: 'perSecond',
  atMost: 1,
  what: `idle waiter, ${client}: commands per second`,
});

export const idleWaiter = {
  id: 'idle-waiter',
  title: 'One idle waiter',
  names: VARIANTS,
  goals: [goal('turngate', 'ioredis 5'), goal('turngate-node-redis', 'node-redis')],
  async run(context) {
    const title = 'One waiter while another process keeps the lock';
    const entries = chosenFrom(VARIANTS, context.options);
    const rows = await medianOfRuns(entries, 1, context, title, (entry) => runOnce(entry, context));
    const columns = [{ key: 'perSecond', label: 'commands per second', better: 'less' }];
    const note = 'Peers ask every 10 ms; what the holder sends alone is taken off.';
    return [{ id: 'idle-waiter', title, note, columns, rows }];
  },
};

async function runOnce({ id, sent }, { redis }) {
  const settings = { id, port: redis.port, leaseMs: LEASE_MS, patientMs: 60_000 };
  return await withWorkers(2, {}, async ([holder, waiter]) => {
    await Promise.all([holder.ask('open', settings), waiter.ask('open', settings)]);
    const key = `kept:${nowUs()}`;
    await holder.ask('keep', { key });
    const commandsIn = async () => {
      const before = await readMeter(redis.client);
      await sleep(WINDOW_MS);
      return meterBetween(before, await readMeter(redis.client), sent).commands;
    };
    const alone = await commandsIn();
    const waiting = waiter.ask('keep', { key });
    await sleep(500); // Its first try and its subscription are not what waiting costs.
    const together = await commandsIn();
    await holder.ask('give');
    await waiting;
    await waiter.ask('give');
    return { perSecond: Math.max(0, together - alone) / (WINDOW_MS / 1_000) };
  });
}
