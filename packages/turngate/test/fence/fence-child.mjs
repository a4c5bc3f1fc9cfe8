// One holder as a process. argv: kind of data, its URL, id, lock database URL, lease in ms, scheme.
// Does what its parent says ("lock", "read", "write") and answers each message, until it is killed.
// Scheme "enter-check" is the right one. "write-only" compares fences at the write alone: it is here
// to be seen losing an update.
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import { fencedRows, redisFence } from '../../dist/fence/index.js';
import { createGate } from '../../dist/index.js';
import { memory } from '../../dist/stores/memory/index.js';
import { postgresLocks, postgresSession } from '../../dist/stores/postgres/index.js';

const [kind, url, id, locksUrl, leaseMs, scheme] = process.argv.slice(2);
const locksPool = new pg.Pool({ connectionString: locksUrl, max: 3 });
locksPool.on('error', () => undefined);
const gate = createGate({ records: memory(), locks: postgresLocks(locksPool) });

/** A connection of its own, as a session. */
async function openSql() {
  if (kind === 'mariadb') {
    const connection = await createPool({ uri: url }).getConnection();
    const ask = async (text, values) => (await connection.query(text, values))[0];
    return {
      dialect: 'mysql',
      async query(text, values) {
        const places = [...text.matchAll(/\$(\d+)/g)].map(([, place]) => values[place - 1]);
        const result = await ask(text.replace(/\$\d+/g, '?'), places);
        return Array.isArray(result)
          ? { rows: result, affectedRows: 0 }
          : { rows: [], affectedRows: result.affectedRows };
      },
    };
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return postgresSession(client);
}

async function sqlData() {
  const session = await openSql();
  const rows = fencedRows({ table: 'counter' });
  const around = async (body) => {
    await session.query('BEGIN', []);
    try {
      const value = await body();
      await session.query('COMMIT', []);
      return value;
    } catch (error) {
      await session.query('ROLLBACK', []);
      throw error;
    }
  };
  let entry;
  if (scheme === 'enter-check') {
    return {
      async read(fence) {
        entry = await around(() => rows.enter(session, { id, fence }));
        return Number(entry.row.n);
      },
      write: (_, n) => around(() => entry.in(session).write({ n })),
    };
  }
  return {
    async read() {
      return Number((await session.query('SELECT n FROM counter WHERE id = $1', [id])).rows[0].n);
    },
    async write(fence, n) {
      const text = 'UPDATE counter SET n = $1, fence = $2 WHERE id = $3 AND fence <= $4';
      const { affectedRows } = await session.query(text, [n, fence, id, fence]);
      if (affectedRows === 0) throw Object.assign(new Error('stale'), { code: 'FENCE_STALE' });
    },
  };
}

function redisData() {
  const client = new Redis(url);
  if (scheme === 'enter-check') {
    const fences = redisFence(client);
    let entry;
    return {
      async read(fence) {
        entry = await fences.enter({ key: id, fence });
        return Number(entry.value);
      },
      write: (_, n) => entry.write('SET', String(n)),
    };
  }
  const writeOnly = `local mark = tonumber(redis.call('GET', KEYS[1]) or '0')
    if mark > tonumber(ARGV[1]) then return 0 end
    redis.call('SET', KEYS[1], ARGV[1]); redis.call('SET', KEYS[2], ARGV[2]); return 1`;
  return {
    read: async () => Number(await client.get(id)),
    async write(fence, n) {
      const written = await client.eval(writeOnly, 2, `${id}:mark`, id, String(fence), String(n));
      if (written === 0) throw Object.assign(new Error('stale'), { code: 'FENCE_STALE' });
    },
  };
}

const data = kind === 'redis' ? redisData() : await sqlData();
let lock;
let seen;
const verbs = {
  async lock() {
    lock = await gate.acquire(id, { leaseMs: Number(leaseMs), waitMs: 20_000, renew: false });
  },
  async read() {
    seen = await data.read(lock.fence);
    return seen;
  },
  async write() {
    await data.write(lock.fence, seen + 1); // No assertHeld: the pause may come right after it.
    return 'written';
  },
};

process.on('message', (verb) => {
  void (async () => {
    try {
      process.send({ verb, answer: (await verbs[verb]()) ?? 'done' });
    } catch (error) {
      process.send({ verb, answer: error.code ?? String(error) });
    }
  })();
});
process.send({ verb: 'start', answer: 'done' });
