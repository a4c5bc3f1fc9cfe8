// What people write by hand around the same work, on node-postgres with named statements. None of
// these checks the payload of a repeat, expires a record or settles a lost COMMIT.
import { setTimeout as sleep } from 'node:timers/promises';
import { UPDATE } from './workload.mjs';

const statement = (name, text) => (values) => ({ name: `bench_${name}`, text, values });
const update = (account) => ({ ...UPDATE, values: [account] });
const claim = statement(
  'claim',
  'INSERT INTO idem (op, key) VALUES (1, $1) ON CONFLICT DO NOTHING',
);
const read = statement('read', 'SELECT result FROM idem WHERE op = 1 AND key = $1');
const finish = statement(
  'finish',
  'UPDATE idem SET state = 2, result = $2 WHERE op = 1 AND key = $1',
);

async function transaction(pool, body) {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const result = await body(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}

const resultOf = (rows) => rows.rows[0]?.result ?? undefined;

/** `delayMs` makes the work longer, for calls that are to meet in flight. */
async function work(client, account, delayMs = 0) {
  const [{ balance }] = (await client.query(update(account))).rows;
  if (delayMs > 0) await sleep(delayMs);
  return balance;
}

/** The base of everything: BEGIN, UPDATE, COMMIT. */
export function bare(pool) {
  return ({ account }) => transaction(pool, (client) => work(client, account));
}

/** The key in the same transaction; a repeat learns only that it is one. */
export function insertUpdate(pool) {
  return ({ key, account }) =>
    transaction(pool, async (client) => {
      const { rowCount } = await client.query(claim([key]));
      return rowCount === 0 ? undefined : await work(client, account);
    });
}

async function insertUpdateStoreIn(client, { key, account }, delayMs) {
  const { rowCount } = await client.query(claim([key]));
  if (rowCount === 0) return resultOf(await client.query(read([key])));
  const balance = await work(client, account, delayMs);
  await client.query(finish([key, JSON.stringify(balance)]));
  return balance;
}

/** The usual library: key, work and result in one transaction, a trip for each. */
export function insertUpdateStore(pool, delayMs) {
  return (request) => transaction(pool, (client) => insertUpdateStoreIn(client, request, delayMs));
}

/** The same behind a look whether it is there already. */
export function selectFirst(pool) {
  return async (request) =>
    resultOf(await pool.query(read([request.key]))) ??
    (await transaction(pool, (client) => insertUpdateStoreIn(client, request)));
}

/** What the measured peers do: claim, work and result each commit by themselves. */
export function threeCommits(pool, delayMs) {
  return async ({ key, account }) => {
    const { rowCount } = await pool.query(claim([key]));
    if (rowCount === 0) return resultOf(await pool.query(read([key])));
    const balance = await transaction(pool, (client) => work(client, account, delayMs));
    await pool.query(finish([key, JSON.stringify(balance)]));
    return balance;
  };
}
