// First calls on PostgreSQL: one statement in one trip, and arbitrary code around a transaction.
import { createGate } from 'turngate';
import { postgres } from 'turngate/postgres';
import { openPg, overNetworks } from '../lib/sql-suite.mjs';
import { guarded } from '../scenarios/guarded.mjs';
import { bare, insertUpdateStore } from '../scenarios/hand-written.mjs';
import { freshRequest, RepeatingRequests } from '../scenarios/workload.mjs';

/** The business update as a declared write. */
export function declaredWrite(client, { memory = false } = {}) {
  const gate = createGate({
    records: postgres(client),
    ...(memory ? {} : { memoryCharsMax: 0 }),
  });
  const write = gate.singleWrite({
    name: 'account.add',
    key: ({ key }) => key,
    fingerprint: ({ account }) => ({ account }),
    statement: 'UPDATE accounts SET balance = balance + 1 WHERE id = $1::int RETURNING balance',
    values: ({ account }) => [account],
  });
  return {
    call: async (request) => (await write(request)).value.balance,
    close: () => gate.close(),
  };
}

/** One statement by hand: claim, write and result, no look at the payload, nothing on a repeat. */
function oneStatement(pool) {
  const text = `WITH work AS (
      UPDATE accounts SET balance = balance + 1 WHERE id = $2 RETURNING balance
    ), claim AS (
      INSERT INTO idem (op, key, state, result) SELECT 1, $1, 2, to_jsonb(balance) FROM work
      RETURNING result
    ) SELECT result FROM claim`;
  return async ({ key, account }) =>
    (await pool.query({ name: 'bench_one', text, values: [key, account] })).rows[0].result;
}

const variant = (id, label, open) => ({ id, label, open });
const plain =
  (make) =>
  ({ pool }) => ({ call: make(pool) });
const base = variant('bare-pg', 'bare: BEGIN, UPDATE, COMMIT', plain(bare));

const first = {
  id: 'pg-first',
  title: 'PostgreSQL, first call',
  requests: () => ({ next: freshRequest }),
  base,
  variants: [
    variant('by-hand-pg', 'by hand: key, work, result', plain(insertUpdateStore)),
    variant('one-statement-pg', 'by hand: one statement', plain(oneStatement)),
    variant('turngate-write', '**Turngate**, single write', ({ pool }) => declaredWrite(pool)),
    variant('turngate-operation', '**Turngate**, any code', ({ pool }) => guarded(pool)),
  ],
};

const repeats = {
  id: 'pg-repeats',
  title: 'PostgreSQL, 90 % repeats',
  requests: () => new RepeatingRequests(0.9),
  base,
  variants: [
    variant('by-hand-pg', 'by hand: key, work, result', plain(insertUpdateStore)),
    variant('turngate-write', '**Turngate**, single write, memory off', ({ pool }) =>
      declaredWrite(pool),
    ),
    variant('turngate-write-memory', '**Turngate**, single write, memory on', ({ pool }) =>
      declaredWrite(pool, { memory: true }),
    ),
  ],
};

const goal = (table, row, atLeast, what, key = 'opsPerSecond') => ({
  table,
  row,
  key,
  atLeast,
  what,
});

export const postgresCalls = {
  id: 'postgresql',
  title: 'Calls on PostgreSQL',
  goals: [
    goal('pg-first-loopback', 'turngate-write', 1.05, 'single write, PostgreSQL: calls/s ÷ bare'),
    goal('pg-first-rtt', 'turngate-write', 1.8, 'the same at +2 ms'),
    goal('pg-first-loopback', 'turngate-operation', 0.72, 'any code, PostgreSQL: calls/s ÷ bare'),
    goal('pg-first-rtt', 'turngate-operation', 0.85, 'the same at +2 ms'),
    goal('pg-repeats-loopback', 'turngate-write', 1.6, '90 % repeats, memory off'),
    goal('pg-repeats-loopback', 'turngate-write-memory', 4, '90 % repeats, memory on'),
    {
      table: 'pg-repeats-loopback',
      row: 'turngate-write',
      key: 'p99Us',
      atMost: 1.2,
      what: '90 % repeats, memory off: p99',
    },
  ],
  async run(context) {
    const { postgres: server, admin } = context;
    const terms = {
      reset: () => admin.query('TRUNCATE turngate_record, idem'),
      open(url) {
        const pool = openPg(url);
        return { pool, close: () => pool.end() };
      },
    };
    return [
      ...(await overNetworks(first, server, terms, context)),
      ...(await overNetworks(repeats, server, terms, context)),
    ];
  },
};
