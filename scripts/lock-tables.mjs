// Writes the tables of lock stores into the documents: what each declares, and which law holds on
// which. Usage: node scripts/lock-tables.mjs [--write]; without --write it only compares. Reads dist/.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const library = join(root, 'packages', 'turngate');
const require = createRequire(join(library, 'package.json'));
const load = (path) => import(pathToFileURL(join(library, 'dist', path)).href);

const [memory, postgres, mysql, redis, etcd, zookeeper, conformance] = await Promise.all([
  load('stores/memory/index.js'),
  load('stores/postgres/index.js'),
  load('stores/mysql/index.js'),
  load('stores/redis/index.js'),
  load('stores/etcd/index.js'),
  load('stores/zookeeper/index.js'),
  load('conformance/index.js'),
]);

/** None of these clients is connected: opening a store sends nothing. */
function openStores() {
  const { Redis } = require('ioredis');
  const lazy = () => new Redis({ lazyConnect: true });
  const pool = new (require('pg').Pool)();
  const mysqlPool = require('mysql2').createPool({});
  const { Etcd3 } = require('etcd3');
  return {
    'memoryLocks()': memory.memoryLocks(),
    'postgresLocks(client)': postgres.postgresLocks(pool),
    'postgresSessionLocks(client)': postgres.postgresSessionLocks(pool),
    'mysqlLocks(pool)': mysql.mysqlLocks(mysqlPool),
    'mysqlSessionLocks(pool)': mysql.mysqlSessionLocks(mysqlPool),
    'redisLocks(client)': redis.redisLocks(lazy()),
    'redlock(clients)': redis.redlock([lazy(), lazy(), lazy()]),
    'zookeeperLocks(client)': zookeeper.zookeeperLocks(() => undefined),
    'etcdLocks(client)': etcd.etcdLocks(new Etcd3()),
  };
}

const cell = (value) => (typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value));

/** A Markdown table with columns as wide as their longest cell. */
function table(rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length), 3));
  const line = (row) => `| ${row.map((text, i) => text.padEnd(widths[i])).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return [line(rows[0]), rule, ...rows.slice(1).map(line)].join('\n');
}

function capabilityTable(stores) {
  const verbs = { pass: 'pass', forceRelease: 'forceRelease', onLoss: 'onLoss' };
  const names = Object.keys(Object.values(stores)[0].capabilities);
  const rows = Object.entries(stores).map(([name, store]) => [
    `\`${name}\``,
    ...names.map((capability) => cell(store.capabilities[capability])),
    ...Object.values(verbs).map((verb) => cell(store[verb] !== undefined)),
  ]);
  return table([['store', ...names, ...Object.keys(verbs)], ...rows]);
}

function guaranteeTable(stores) {
  const names = Object.keys(Object.values(stores)[0].capabilities);
  const rows = Object.entries(stores).map(([name, { capabilities }]) => [
    `\`${name}\``,
    ...names.map((capability) => cell(capabilities[capability])),
  ]);
  return table([['store', ...names], ...rows]);
}

/** Law by store: `yes`, or the number of the reason why the law does not apply. */
function lawTable(stores) {
  const reasons = [];
  const numberOf = (reason) => {
    if (!reasons.includes(reason)) reasons.push(reason);
    return `(${reasons.indexOf(reason) + 1})`;
  };
  const cases = Object.values(stores).map((store) => conformance.lockLawsFor(store));
  const rows = conformance.lockLawNames.map((law, i) => [
    law,
    ...cases.map((laws) =>
      laws[i].notApplicable === undefined ? 'yes' : numberOf(laws[i].notApplicable),
    ),
  ]);
  const headings = Object.keys(stores).map((name) => `\`${name.replace(/\(.*/, '')}\``);
  const notes = reasons.map((reason, i) => `- (${i + 1}): ${reason}`);
  return `${table([['law', ...headings], ...rows])}\n\nNot applicable, because:\n\n${notes.join('\n')}`;
}

/** Every experiment has a row, every row names test files that are there, every number a test. */
function checkExperiments() {
  const path = 'docs/lock-experiments.md';
  const rows = readFileSync(join(root, path), 'utf8').split('\n');
  const problems = [];
  for (let number = 1; number <= 95; number += 2) {
    const row = rows.find((line) => line.startsWith(`| ${number} `));
    if (row === undefined) problems.push(`no row ${number}`);
    for (const [, file, test] of (row ?? '').matchAll(
      /([\w/-]+\.test\.ts)(?:: (\d+)(?=;|, | \(| *\|))?/g,
    )) {
      const source = join(library, 'test', file);
      if (!existsSync(source)) problems.push(`row ${number}: there is no ${file}`);
      else if (test !== undefined && !readFileSync(source, 'utf8').includes(`${test}: `)) {
        problems.push(`row ${number}: ${file} has no test ${test}`);
      }
    }
  }
  for (const problem of problems) console.log(`${path}: ${problem}`);
  return problems.length === 0 ? 0 : 1;
}

/** Replaces what stands between the marks of a table. */
function fill(page, name, text) {
  const [start, end] = [`<!-- generated: ${name} -->`, '<!-- end of generated -->'];
  const from = page.indexOf(start);
  const to = page.indexOf(end, from);
  if (from < 0 || to < 0) throw new Error(`no marks for "${name}"`);
  return `${page.slice(0, from + start.length)}\n\n${text}\n\n${page.slice(to)}`;
}

const stores = openStores();
const pages = {
  'docs/stores-locks.md': {
    'lock capabilities': capabilityTable(stores),
    'lock laws': lawTable(stores),
  },
  'docs/guarantees.md': { 'lock capabilities': guaranteeTable(stores) },
};
let stale = 0;
for (const [path, tables] of Object.entries(pages)) {
  const before = readFileSync(join(root, path), 'utf8');
  let after = before;
  for (const [name, text] of Object.entries(tables)) after = fill(after, name, text);
  if (after === before) continue;
  if (process.argv.includes('--write')) writeFileSync(join(root, path), after);
  else {
    stale += 1;
    console.log(
      `${path}: the tables of lock stores are stale: node scripts/lock-tables.mjs --write`,
    );
  }
}
stale += checkExperiments();
console.log(`lock tables: ${Object.keys(stores).length} stores, ${stale} stale pages`);
process.exit(stale === 0 ? 0 : 1); // Some of the clients keep the process alive.
