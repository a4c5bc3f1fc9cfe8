// One process of several. argv: role, PostgreSQL URL for the locks, Redis URL, name, number.
// Role "reader": waits for "go", then reads one key `number` times at once through a single flight
// whose loads are counted in Redis. Role "leader": stands for election and says what happens.
import { Redis } from 'ioredis';
import pg from 'pg';
import { createGate, singleFlight } from '../../dist/index.js';
import { memory } from '../../dist/stores/memory/index.js';
import { postgresLocks } from '../../dist/stores/postgres/index.js';

const [role, locksUrl, redisUrl, name, number] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: locksUrl, max: 3 });
pool.on('error', () => undefined);
const gate = createGate({ records: memory(), locks: postgresLocks(pool) });

if (role === 'reader') {
  const redis = new Redis(redisUrl);
  const flight = singleFlight(gate, {
    name,
    freshMs: 60_000,
    waitMs: 20_000,
    leaseMs: 1_000,
    cache: {
      async get(key) {
        const text = await redis.get(`${name}:${key}`);
        return text === null ? undefined : JSON.parse(text);
      },
      async set(key, entry, { keepMs }) {
        await redis.set(`${name}:${key}`, JSON.stringify(entry), 'PX', keepMs);
      },
    },
    async load() {
      const loads = await redis.incr(`${name}:loads`);
      process.send({ loading: loads });
      // The first loader can be told to hang, to be killed in the middle.
      if (loads === 1 && (await redis.exists(`${name}:hang`))) await new Promise(() => {});
      await new Promise((resolve) => setTimeout(resolve, 100));
      return `value ${loads}`;
    },
  });
  process.once('message', () => {
    void (async () => {
      const reads = Array.from({ length: Number(number) }, () => flight.get('key'));
      const values = [...new Set(await Promise.all(reads))];
      process.send({ values });
      process.disconnect();
      redis.disconnect();
      await pool.end();
    })();
  });
  process.send({ ready: true });
} else {
  gate.elect(name, {
    leaseMs: Number(number),
    retryMs: 50,
    onError: (error) => process.send({ error: String(error) }),
    async onElected({ signal, fence }) {
      process.send({ elected: String(fence) });
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      process.send({ lost: signal.reason.code });
    },
  });
}
