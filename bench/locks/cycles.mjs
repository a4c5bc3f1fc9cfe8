// Very many names, each locked once: nothing may stay behind, here or in Redis.
import { chosenFrom } from './catalog.mjs';
import { withWorkers } from './runs.mjs';

const VARIANTS = ['turngate', 'turngate-node-redis'];
const WARM = 20_000;
const COLUMNS = [
  { key: 'heapBytes', label: 'heap growth per name, bytes', digits: 2 },
  { key: 'keysGrown', label: 'more keys in Redis', digits: 0 },
  { key: 'keys', label: 'keys left', digits: 0 },
  { key: 'perSecond', label: 'cycles/s', digits: 0 },
];

const goalsOf = (row, client) => [
  {
    table: 'cycles',
    row,
    key: 'heapBytes',
    atMost: 1,
    what: `many names, ${client}: heap bytes per name`,
  },
  { table: 'cycles', row, key: 'keysGrown', atMost: 2, what: `many names, ${client}: more keys` },
];

export const cycles = {
  id: 'cycles',
  title: 'Many names, one cycle each',
  names: VARIANTS,
  goals: [...goalsOf('turngate', 'ioredis 5'), ...goalsOf('turngate-node-redis', 'node-redis')],
  async run({ redis, options, signal, say }) {
    const count = options.cycles;
    const title = `${count.toLocaleString('en-US')} cycles over as many names`;
    const rows = [];
    for (const { id, label, ours } of chosenFrom(VARIANTS, options)) {
      signal.throwIfAborted();
      say(`${title}: ${id}`);
      rows.push({ id, label, ours, values: await cycleAll(id, count, redis) });
    }
    const note = `Heap after a full collection and keys in Redis, against those after ${WARM.toLocaleString('en-US')} names of warm-up.`;
    return [{ id: 'cycles', title, note, columns: COLUMNS, rows }];
  },
};

async function cycleAll(id, count, redis) {
  await redis.client.flushdb();
  return await withWorkers(1, { execArgv: ['--expose-gc'] }, async ([worker]) => {
    await worker.ask('open', { id, port: redis.port, leaseMs: 30_000 });
    const warm = await worker.ask('cycle', { from: 0, count: WARM });
    const keysBefore = await redis.client.dbsize();
    const startMs = performance.now();
    const done = await worker.ask('cycle', { from: WARM, count });
    const tookMs = performance.now() - startMs;
    const keys = await redis.client.dbsize();
    await worker.ask('close');
    return {
      heapBytes: (done.heapBytes - warm.heapBytes) / count,
      keysGrown: keys - keysBefore,
      keys,
      perSecond: (1_000 * count) / tookMs,
    };
  });
}
