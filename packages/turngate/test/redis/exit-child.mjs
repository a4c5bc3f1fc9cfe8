// Uses one lock, ends its clients and must then end by itself. argv: url, ioredis | node-redis,
// once | contended.
import { createGate } from '../../dist/index.js';
import { memory } from '../../dist/stores/memory/index.js';
import { redisLocks } from '../../dist/stores/redis/index.js';

const [url, kind, how] = process.argv.slice(2);
const client = await connect();
const gate = createGate({ records: memory(), locks: redisLocks(client) });
const lock = await gate.acquire('exit');
if (how === 'contended') {
  const other = createGate({ records: memory(), locks: redisLocks(client) });
  const waiting = other.acquire('exit');
  setTimeout(() => void lock.release(), 200);
  await (await waiting).release();
} else {
  await lock.release();
}
await client.quit?.();
const timers = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout');
process.stdout.write(`${timers.length} timers\n`);

async function connect() {
  if (kind === 'ioredis') return new (await import('ioredis')).Redis(url);
  const made = (await import('redis')).createClient({ url });
  made.on('error', () => {});
  return await made.connect();
}
