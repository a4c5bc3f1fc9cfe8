// What first calls feel of a clean-up: a million expired records, calls at a fixed rate, windows without
// and with `cleanUp` at work in turn, so that a busy machine is felt by both alike.
import { setTimeout as sleep } from 'node:timers/promises';
import { cleanUp } from 'turngate/admin';
import { mysql } from 'turngate/mysql';
import { postgres } from 'turngate/postgres';
import { quantile } from '../lib/drive.mjs';
import { openMysql, openPg } from '../lib/sql-suite.mjs';
import { guarded as guardedPg } from '../scenarios/guarded.mjs';
import { freshRequest } from '../scenarios/workload.mjs';
import { guarded as guardedMariadb } from './mariadb.mjs';

const CALLS_PER_SECOND = 50;
const WINDOW_MS = 5_000;
const FILL_ROWS = 20_000;

const FILL_PG = `INSERT INTO turngate_record
  (operation, scope, key, state, fingerprint, owner, result, first_processed_at, expires_at)
  SELECT 'bench.old', '-', 'k' || i, 'done', 'f', 'o', repeat('x', 200),
    now() - interval '2 days', now() - interval '1 day' FROM generate_series($1::int, $2::int) i`;

const FILL_MARIADB = `INSERT INTO turngate_record
  SELECT UNHEX(SHA2(CONCAT('bench.old', seq), 256)), 'bench.old', '-', CONCAT('k', seq), 'done', 'f',
    'o', REPEAT('x', 200), UNIX_TIMESTAMP() * 1000 - 172800000, UNIX_TIMESTAMP() * 1000 - 86400000
  FROM seq_1_to_100000000 WHERE seq BETWEEN ? AND ?`;

const DATABASES = [
  {
    id: 'purge-pg',
    title: 'PostgreSQL',
    open({ postgres: { url }, admin }) {
      const pool = openPg(url);
      return {
        records: postgres(pool),
        ...guardedPg(pool),
        empty: () => admin.query('TRUNCATE turngate_record'),
        fill: (from, to) => admin.query(FILL_PG, [from, to]),
        // The fill's own writes shall not be felt in the figures.
        settle: () => admin.query('ANALYZE turngate_record').then(() => admin.query('CHECKPOINT')),
        end: () => pool.end(),
      };
    },
  },
  {
    id: 'purge-mariadb',
    title: 'MariaDB',
    open({ mariadb: { url, admin } }) {
      const pool = openMysql(url, { multipleStatements: true });
      return {
        records: mysql(pool),
        ...guardedMariadb(pool),
        empty: () => admin.query('TRUNCATE turngate_record'),
        fill: (from, to) => admin.query(FILL_MARIADB, [from, to]),
        settle: () => admin.query('ANALYZE TABLE turngate_record'),
        end: () => pool.end(),
      };
    },
  },
];

const COLUMNS = [
  { key: 'calls', label: 'calls', digits: 0 },
  { key: 'p50Ms', label: 'p50 ms' },
  { key: 'p99Ms', label: 'p99 ms' },
  { key: 'p50', label: 'p50 ÷ without' },
  { key: 'p99', label: 'p99 ÷ without' },
  { key: 'deleted', label: 'deleted', digits: 0 },
  { key: 'deletedPerSecond', label: 'deleted/s', digits: 0 },
];

const goal = (table, key, atMost, what) => ({ table, row: 'turngate-purge', key, atMost, what });

export const purge = {
  id: 'purge',
  title: 'Clean-up under load',
  names: DATABASES.map(({ id }) => id),
  goals: DATABASES.flatMap(({ id, title }) => [
    goal(id, 'p50', 1.2, `clean-up, ${title}: p50 ÷ without`),
    goal(id, 'p99', 1.5, `clean-up, ${title}: p99 ÷ without`),
  ]),
  async run(context) {
    const { quick, only = ['purge'] } = context.options;
    const rows = quick ? 50_000 : 1_000_000;
    const tables = [];
    for (const { id, title, open } of DATABASES) {
      if (!only.includes('purge') && !only.includes(id)) continue;
      const opened = open(context);
      try {
        const name = `${title}, ${rows.toLocaleString('en-US')} expired records`;
        const results = await underLoad(opened, { ...context, rows, name });
        tables.push({ id, title: `Clean-up under load: ${name}`, columns: COLUMNS, rows: results });
      } finally {
        await opened.close();
        await opened.empty();
        await opened.end();
      }
    }
    return tables;
  },
};

async function underLoad(database, { rows, name, signal, say }) {
  const { records, call, empty, fill, settle } = database;
  await empty();
  say(`${name}: filling`);
  for (let from = 1; from <= rows; from += FILL_ROWS) {
    signal.throwIfAborted();
    await fill(from, Math.min(rows, from + FILL_ROWS - 1));
  }
  await settle();
  const first = () => call(freshRequest());
  await load(first, endsIn(WINDOW_MS)); // Warm-up.
  const quiet = { samplesMs: [], failures: {} };
  const busy = { samplesMs: [], failures: {} };
  let [deleted, cleaningMs, finished] = [0, 0, false];
  while (!finished) {
    signal.throwIfAborted();
    add(quiet, await load(first, endsIn(WINDOW_MS)));
    const beganMs = performance.now();
    let ended = false;
    const cleaning = cleanUp({ records, signal: AbortSignal.timeout(WINDOW_MS) }).finally(() => {
      cleaningMs += performance.now() - beganMs;
      ended = true;
    });
    add(busy, await load(first, () => ended));
    const report = await cleaning;
    deleted += report.records;
    finished = report.finished;
    const p99 = ({ samplesMs }) => quantile(samplesMs, 0.99).toFixed(1);
    say(`${name}: ${deleted} deleted, p99 ${p99(quiet)} ms without, ${p99(busy)} ms with`);
  }
  return [
    { id: 'no-purge', label: 'no clean-up', bound: true, ...figures(quiet) },
    {
      id: 'turngate-purge',
      label: '**Turngate**, `cleanUp` at work',
      ours: true,
      ...figures(busy, quiet, { deleted, deletedPerSecond: deleted / (cleaningMs / 1_000) }),
    },
  ];
}

/** First calls at a fixed rate, open loop, until `ended` says so. */
async function load(call, ended) {
  const samplesMs = [];
  const failures = {};
  const open = new Set();
  const startMs = performance.now();
  for (let i = 0; !ended(); i++) {
    const dueMs = startMs + (i * 1_000) / CALLS_PER_SECOND;
    const waitMs = dueMs - performance.now();
    if (waitMs > 1) await sleep(waitMs);
    const running = call()
      .then(() => samplesMs.push(performance.now() - dueMs)) // From when it was due: stalls count.
      .catch(({ code = 'unknown' }) => {
        failures[code] = (failures[code] ?? 0) + 1;
      })
      .finally(() => open.delete(running));
    open.add(running);
  }
  await Promise.all(open);
  return { samplesMs, failures };
}

function endsIn(ms) {
  const endMs = performance.now() + ms;
  return () => performance.now() > endMs;
}

function add(to, { samplesMs, failures }) {
  to.samplesMs.push(...samplesMs);
  for (const [code, count] of Object.entries(failures)) {
    to.failures[code] = (to.failures[code] ?? 0) + count;
  }
}

function figures({ samplesMs, failures }, against, more = {}) {
  const at = ({ samplesMs: samples }, share) => quantile(samples, share);
  const [p50Ms, p99Ms] = [at({ samplesMs }, 0.5), at({ samplesMs }, 0.99)];
  const ratios =
    against === undefined ? {} : { p50: p50Ms / at(against, 0.5), p99: p99Ms / at(against, 0.99) };
  return { failures, values: { calls: samplesMs.length, p50Ms, p99Ms, ...ratios, ...more } };
}
