// Counts on PostgreSQL, which no load can change: crowds on one key, and what a durable step costs.
import { setTimeout as sleep } from 'node:timers/promises';
import { createGate } from 'turngate';
import { postgres, postgresStaged } from 'turngate/postgres';
import { IN_FLIGHT, openPg } from '../lib/sql-suite.mjs';
import { countWire } from '../lib/wire-count.mjs';
import { guarded } from '../scenarios/guarded.mjs';
import { freshRequest } from '../scenarios/workload.mjs';
import { declaredWrite } from './postgres.mjs';

const CROWDS = [
  { id: 'turngate-20', label: 'operation, 20 at once', callers: 20, workMs: 20 },
  { id: 'turngate-write-20', label: 'single write, 20 at once', callers: 20 },
  { id: 'turngate-hot', label: '1,000 while the first works 2 s', callers: 1_000, workMs: 2_000 },
  {
    id: 'turngate-hot-two',
    label: 'the same over two gates, as two processes',
    callers: 1_000,
    workMs: 2_000,
    gates: 2,
  },
];

const goal = (table, row, key, limit, what) => ({ table, row, key, what, ...limit });

export const counts = {
  id: 'counts',
  title: 'Counts on PostgreSQL',
  goals: [
    goal('crowds', 'turngate-20', 'answered', { atLeast: 20 }, '20 simultaneous: answered'),
    goal('crowds', 'turngate-20', 'results', { atMost: 1 }, '20 simultaneous: executions'),
    goal('crowds', 'turngate-20', 'trips', { atMost: 3 }, '20 simultaneous: trips'),
    goal('crowds', 'turngate-write-20', 'trips', { atMost: 3 }, 'the same, single write: trips'),
    goal('steps', 'turngate-step', 'trips', { atMost: 5 }, 'a durable step: statements'),
    goal('steps', 'turngate-tx-step', 'trips', { atMost: 5 }, 'a step with a transaction'),
    goal('steps', 'turngate-repeat', 'trips', { atMost: 1 }, 'a repeat of a staged operation'),
  ],
  async run({ postgres: server, admin, say }) {
    await admin.query('CREATE TABLE IF NOT EXISTS effect (line text NOT NULL)');
    say('counting crowds and steps');
    const rows = [];
    for (const crowd of CROWDS) rows.push(await crowdOf(server.url, crowd));
    return [
      { id: 'crowds', title: 'Many callers of one new key', columns: CROWD_COLUMNS, rows },
      {
        id: 'steps',
        title: 'Staged operations, trips to the store',
        columns: [
          { key: 'trips', label: 'trips', digits: 0 },
          { key: 'statements', label: 'statements', digits: 0 },
        ],
        rows: await stepRows(server.url),
      },
    ];
  },
};

const CROWD_COLUMNS = ['callers', 'answered', 'results', 'trips', 'statements'].map((key) => ({
  key,
  label: key,
  digits: 0,
}));

/** Connections are opened first: cold ones would let the callers come too late. */
async function warmPool(url) {
  const pool = openPg(url);
  const wire = countWire(pool);
  const clients = await Promise.all(Array.from({ length: IN_FLIGHT }, () => pool.connect()));
  for (const client of clients) client.release();
  return { pool, wire };
}

async function crowdOf(url, { id, label, callers, workMs, gates = 1 }) {
  const { pool, wire } = await warmPool(url);
  const made = Array.from({ length: gates }, () =>
    workMs === undefined ? declaredWrite(pool) : guarded(pool, { delayMs: workMs }),
  );
  try {
    await Promise.all(made.map(({ call }) => call(freshRequest())));
    const request = freshRequest();
    const { result, trips, statements } = await wire.during(() =>
      Promise.allSettled(Array.from({ length: callers }, (_, i) => made[i % gates].call(request))),
    );
    const answers = result.map(({ value }) => value).filter((value) => value !== undefined);
    const results = new Set(answers).size;
    const values = { callers, answered: answers.length, results, trips, statements };
    return { id, label, ours: true, values };
  } finally {
    for (const { close } of made) await close();
    await pool.end();
  }
}

/** One operation with so many steps of a kind; each kind is declared once per gate. */
function declareSteps(gate, name, steps, inTransaction) {
  return gate.stagedOperation({
    name,
    key: ({ key }) => key,
    async run({ key }, { step }) {
      for (let i = 0; i < steps; i++) {
        if (inTransaction) {
          await step(`s${i}`, { tx: true }, async (tx) => {
            await tx.query('INSERT INTO effect (line) VALUES ($1)', [key]);
          });
        } else await step(`s${i}`, async () => await sleep(1, i));
      }
    },
  });
}

async function stepRows(url) {
  const { pool, wire } = await warmPool(url);
  const staged = postgresStaged(pool);
  const gate = createGate({ records: postgres(pool), staged, memoryCharsMax: 0 });
  const cost = async (call) => {
    const { trips, statements } = await wire.during(() => call({ key: 'a' }));
    return { trips, statements };
  };
  const less = (a, b) => ({ trips: a.trips - b.trips, statements: a.statements - b.statements });
  try {
    const none = await cost(declareSteps(gate, 'none', 0, false));
    const one = declareSteps(gate, 'one', 1, false);
    const first = await cost(one);
    const tx = await cost(declareSteps(gate, 'one.tx', 1, true));
    const row = (id, label, values) => ({ id, label, ours: true, values });
    return [
      row('turngate-none', 'operation without steps', none),
      row('turngate-step', 'each step more', less(first, none)),
      row('turngate-tx-step', 'each step with its own insert in a transaction', less(tx, none)),
      row('turngate-repeat', 'repeat', await cost(one)),
    ];
  } finally {
    await gate.close();
    await pool.end();
  }
}
