// Records in Redis against what is written by hand there: SET NX and SET, or SET NX and GET.
import { randomUUID } from 'node:crypto';
import { createGate } from 'turngate';
import { redisRecords } from 'turngate/redis';
import { drive } from '../lib/drive.mjs';
import { interleave } from '../lib/interleave.mjs';
import { RATE_COLUMNS } from '../lib/sql-suite.mjs';
import { ratioRows } from '../lib/tables.mjs';
import { openClient } from '../peers/clients.mjs';

const RETENTION_MS = 600_000;
const RESULT = { balance: 17 };

/** Claim, work, result: two trips, nothing checked. */
const rawFirst = (client) => async () => {
  const key = `raw:${randomUUID()}`;
  await client.set(key, 'claimed', 'PX', RETENTION_MS, 'NX');
  await client.set(key, JSON.stringify(RESULT), 'PX', RETENTION_MS);
};

/** The claim fails, then the result is read: two trips. */
async function rawRepeat(client) {
  const key = 'raw:repeated';
  await client.set(key, JSON.stringify(RESULT), 'PX', RETENTION_MS);
  return async () => {
    await client.set(key, 'claimed', 'PX', RETENTION_MS, 'NX');
    return JSON.parse(await client.get(key));
  };
}

/** The one trip by hand: SET NX GET. */
async function rawRepeatInOne(client) {
  const key = 'raw:repeated-in-one';
  await client.set(key, JSON.stringify(RESULT), 'PX', RETENTION_MS);
  return async () => JSON.parse(await client.set(key, 'claimed', 'PX', RETENTION_MS, 'NX', 'GET'));
}

function guarded(client, memory) {
  const gate = createGate({
    records: redisRecords(client),
    ...(memory ? {} : { memoryCharsMax: 0 }),
  });
  const call = gate.operation({
    name: 'account.add',
    key: ({ key }) => key,
    fingerprint: ({ account }) => ({ account }),
    run: async () => RESULT,
  });
  return { call, close: () => gate.close() };
}

const goal = (table, row, atMost, what) => ({ table, row, key: 'p50Us', atMost, what });

export const redisCalls = {
  id: 'redis',
  title: 'Calls on Redis',
  goals: [
    goal('redis-first-1', 'turngate-redis', 1.15, 'Redis, first call: p50 ÷ SET NX + SET'),
    goal('redis-repeat-1', 'turngate-redis', 0.65, 'Redis, repeat: p50 ÷ SET NX + GET'),
    goal('redis-repeat-1', 'turngate-redis-memory', 0.05, 'the same from memory'),
  ],
  async run({ redis, options, signal, say }) {
    // Each variant has a client of its own, as in a service.
    const opened = [];
    const client = async () => {
      opened.push(await openClient('ioredis5', redis.port));
      return opened.at(-1).client;
    };
    const cold = guarded(await client(), false);
    const remembering = guarded(await client(), true);
    const repeated = { key: randomUUID(), account: 1 };
    await Promise.all([cold.call(repeated), remembering.call(repeated)]);
    const fresh = (call) => () => call({ key: randomUUID(), account: 1 });
    const repeat = (call) => () => call(repeated);
    const turngate = (call) => ['turngate-redis', '**Turngate**', call];
    const firsts = [
      ['raw-first', 'raw: SET NX, SET', rawFirst(await client())],
      turngate(fresh(cold.call)),
    ];
    const repeats = [
      ['raw-repeat', 'raw: SET NX, GET', await rawRepeat(await client())],
      ['raw-repeat-one', 'raw: SET NX GET in one', await rawRepeatInOne(await client())],
      turngate(repeat(cold.call)),
      ['turngate-redis-memory', '**Turngate**, from memory', repeat(remembering.call)],
    ];
    const tables = [];
    try {
      for (const [id, title, rows] of [
        ['redis-first', 'Redis, first call', firsts],
        ['redis-repeat', 'Redis, repeat', repeats],
      ]) {
        for (const inFlight of [1, 16]) {
          const run = { id, title, rows, inFlight };
          tables.push(await measured(run, { options, signal, say }));
        }
      }
      return tables;
    } finally {
      await Promise.all([cold.close(), remembering.close()]);
      for (const { close } of opened) await close();
    }
  },
};

async function measured({ id, title, rows, inFlight }, { options, signal, say }) {
  const calls = options.quick ? 300 : 1_000;
  const [base, ...variants] = rows.map(([row, label, call]) => ({
    id: row,
    label,
    slice: () => drive({ calls, inFlight, call }),
  }));
  for (const { slice } of [base, ...variants]) await slice();
  const rounds = options.rounds ?? (options.quick ? 5 : 15);
  const name = `${title}, ${inFlight} in flight`;
  const onRound = (round) => say(`${name}: round ${round} of ${rounds}`);
  const results = await interleave({ base, variants, rounds, signal, onRound });
  return {
    id: `${id}-${inFlight}`,
    title: name,
    columns: RATE_COLUMNS,
    rows: ratioRows(results),
  };
}
