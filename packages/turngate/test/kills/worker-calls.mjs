// What the processes of the kill suite call: every way to run an operation. Each effect is a line
// `call|key|token`, where the token says which run made it; the answer is that token.
import { createGate, isUniqueViolation } from '../../dist/index.js';
import { once } from '../../dist/once/index.js';

const insert = 'INSERT INTO effect (line) VALUES ($1)';
const waitMs = 60_000;

/** `calls[name](key)` gives an outcome whose value is the token, where the store tells it. */
export function declareCalls({ records, staged, database }, config) {
  const gate = createGate({ records, staged, ...(config.seed % 2 ? { memoryCharsMax: 0 } : {}) });
  let runs = 0;
  const setting = { ...config, gate, database, token: () => `${config.node}.${++runs}` };
  const calls = staged === undefined ? guardedCalls(setting) : atomicCalls(setting);
  const recovery = staged === undefined ? undefined : gate.recover({ everyMs: 200 });
  return { calls, recovery, close: () => gate.close() };
}

/** The record commits with the effect. */
function atomicCalls({ gate, database, token, providerUrl, leaseMs, random }) {
  const effect = async (session, call, key) => {
    const mine = token();
    await session.query(insert, [`${call}|${key}|${mine}`]);
    await pause(random() * 40); // So that kills find open transactions.
    return mine;
  };
  const declare = (name) =>
    gate.operation({
      name: `kills.${name}`,
      key: (key) => key,
      waitMs,
      run: (key, { tx }) => effect(database.session(tx), name, key),
    });
  const write = gate.singleWrite({
    name: 'kills.write',
    key: ({ key }) => key,
    fingerprint: ({ key }) => key,
    waitMs,
    statement: database.dialect === 'postgres' ? `${insert} RETURNING line` : insert,
    values: ({ key, mine }) => [`write|${key}|${mine}`],
    answer: ([{ line }]) => line?.split('|')[2],
  });
  const within = declare('within');
  return {
    write: (key) => write({ key, mine: token() }),
    handler: declare('handler'),
    within: (key) => database.transaction((_, tx) => within.within(tx, key)),
    staged: stagedCall({ gate, database, providerUrl, leaseMs }),
  };
}

/** A provider that honours keys before and after a line of ours. */
function stagedCall({ gate, database, providerUrl, leaseMs }) {
  const ask = async (step, key, providerKey) => {
    const headers = { 'Idempotency-Key': providerKey };
    const response = await fetch(`${providerUrl}/${step}/${key}`, { method: 'POST', headers });
    return await response.text();
  };
  return gate.stagedOperation({
    name: 'kills.staged',
    key: (key) => key,
    waitMs,
    leaseMs,
    async run(key, { step }) {
      const charge = await step('charge', (providerKey) => ask('charge', key, providerKey));
      await step('book', { tx: true }, async (tx) => {
        await database.session(tx).query(insert, [`staged|${key}|${charge}`]);
      });
      await step('ship', (providerKey) => ask('ship', key, providerKey));
      return charge;
    },
  });
}

/** Record and effect are apart: what the database has of a key decides. */
function guardedCalls({ gate, database, token, random }) {
  const known = async (session, call, key) => {
    const text = 'SELECT line FROM effect WHERE line LIKE $1';
    const { rows } = await session.query(text, [`${call}|${key}|%`]);
    return rows[0].line.split('|')[2];
  };
  const declare = (call, run) =>
    gate.operation({ name: `kills.${call}`, key: (key) => key, waitMs, run });
  /** Between the commit of the effect and the record kills hurt most. */
  const committed = async (work) => {
    const mine = await database.transaction(work);
    await pause(random() * 40);
    return mine;
  };
  return {
    voucher: declare('voucher', (key) =>
      committed(async (session) => {
        if (!(await once.voucher(session, { name: 'kills.voucher', key }))) {
          return await known(session, 'voucher', key);
        }
        const mine = token();
        await session.query(insert, [`voucher|${key}|${mine}`]);
        return mine;
      }),
    ),
    unique: declare('unique', async (key) => {
      try {
        return await committed(async (session) => {
          const mine = token();
          await session.query('INSERT INTO paid (pay_key) VALUES ($1)', [key]);
          await session.query(insert, [`unique|${key}|${mine}`]);
          return mine;
        });
      } catch (error) {
        if (!isUniqueViolation(error, 'paid_once')) throw error;
        return await database.transaction((session) => known(session, 'unique', key));
      }
    }),
  };
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
