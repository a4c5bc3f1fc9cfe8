// `npm run bench`: Turngate against the bare transaction and against what is written by hand, on
// PostgreSQL. The method and the last figures are in README.md.
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import postgresJs from 'postgres';
import { migrate } from 'turngate/postgres';
import { startDelayProxy } from '../lib/delay-proxy.mjs';
import { environmentOf } from '../lib/environment.mjs';
import { measure } from '../lib/measure.mjs';
import { readOptions } from '../lib/options.mjs';
import { counterTable, losingRows, NETWORKS, scenarioTable, withSection } from '../lib/report.mjs';
import { SETTINGS, startPostgres, throughPort } from '../lib/servers.mjs';
import { openPg } from '../lib/sql-suite.mjs';
import { counters, runCounters } from '../scenarios/counters.mjs';
import { firstCall, firstCallPostgresJs } from '../scenarios/first-call.mjs';
import { repeats } from '../scenarios/repeats.mjs';
import { IN_FLIGHT, SCHEMA } from '../scenarios/workload.mjs';

const SCENARIOS = [firstCall, firstCallPostgresJs, repeats];
const NAMES = [...SCENARIOS, counters].flatMap(({ id, variants }) => [
  id,
  ...variants.map((variant) => variant.id),
]);

const say = (text) => process.stderr.write(`bench: ${text}\n`);

/** The scenario with the chosen variants, or undefined when none is. */
function chosen(scenario, only) {
  if (only === undefined || only.includes(scenario.id)) return scenario;
  const variants = scenario.variants.filter(({ id }) => only.includes(id));
  return variants.length === 0 ? undefined : { ...scenario, variants };
}

async function openClients(url) {
  const pool = openPg(url);
  const sql = postgresJs(url, { max: IN_FLIGHT, onnotice() {} });
  return { pool, sql, close: () => Promise.all([pool.end(), sql.end()]) };
}

/** The median of 50 sequential trips: what the network really costs here. */
async function roundTripMs(pool) {
  const tripsMs = [];
  const client = await pool.connect();
  for (let i = 0; i < 50; i++) {
    const sentMs = performance.now();
    await client.query('SELECT 1');
    tripsMs.push(performance.now() - sentMs);
  }
  client.release();
  return Number(tripsMs.sort((a, b) => a - b)[25].toFixed(2));
}

async function overNetwork(network, server, { scenarios, admin, options, signal }) {
  const proxy =
    network === 'rtt'
      ? await startDelayProxy({ targetPort: server.port, eachWayMs: options.rttMs / 2 })
      : undefined;
  const clients = await openClients(proxy ? throughPort(server.url, proxy.port) : server.url);
  try {
    const tripMs = await roundTripMs(clients.pool);
    const tables = [];
    for (const scenario of scenarios) {
      const name = `${scenario.title}, ${NETWORKS[network]}`;
      const onRound = (round) => say(`${name}: round ${round} of ${options.rounds}`);
      const reset = () => admin.query('TRUNCATE turngate_record, idem');
      const context = { clients, reset, options, signal, onRound, inFlight: IN_FLIGHT };
      const rows = await measure(scenario, context);
      tables.push({ scenario: scenario.id, title: scenario.title, network, rows });
      console.log(`\n${name}\n${scenarioTable(tables.at(-1))}`);
    }
    return { tripMs, tables };
  } finally {
    await clients.close();
    await proxy?.stop();
  }
}

async function runAll(server, options, signal) {
  const admin = openPg(server.url, 1);
  try {
    await admin.query(SCHEMA);
    await migrate(admin);
    await admin.query('VACUUM ANALYZE accounts');
    const { rows } = await admin.query('SHOW server_version');
    const results = {
      takenAt: new Date().toISOString(),
      environment: environmentOf(rows[0].server_version),
      options: { ...options, inFlight: IN_FLIGHT, settings: SETTINGS },
      roundTripMs: {},
      tables: [],
    };
    const scenarios = SCENARIOS.map((one) => chosen(one, options.only)).filter(Boolean);
    const networks = scenarios.length === 0 ? [] : ['loopback', 'rtt'];
    for (const network of networks.slice(0, options.rttMs === 0 ? 1 : 2)) {
      const context = { scenarios, admin, options, signal };
      const { tripMs, tables } = await overNetwork(network, server, context);
      results.roundTripMs[network] = tripMs;
      results.tables.push(...tables);
    }
    const counted = chosen(counters, options.only);
    if (counted !== undefined) {
      results.counters = await runCounters(server.url, counted.variants);
      console.log(`\n${counters.title}\n${counterTable(results.counters)}`);
    }
    return results;
  } finally {
    await admin.end();
  }
}

async function write(results) {
  const day = results.takenAt.slice(0, 10);
  const minute = results.takenAt.slice(11, 16).replace(':', '');
  const file = `results/${day}-${minute}-postgresql.json`; // Each run keeps its own figures.
  const here = (path) => new URL(`../${path}`, import.meta.url);
  await writeFile(here(file), `${JSON.stringify(results, null, 1)}\n`);
  const { environment: on, roundTripMs: trips, options } = results;
  const facts = [
    `Taken on ${day}: ${on.cores} cores (${on.processor}), shared by load, proxy and server;`,
    `PostgreSQL ${on.postgresql}, Node ${on.node}, pg ${on.pg}, postgres ${on.postgresJs},`,
    `Turngate ${on.turngate}; ${options.rounds} rounds of ${options.calls} calls. Round trip of`,
    `\`SELECT 1\`: ${trips.loopback} ms on loopback, ${trips.rtt} ms through the proxy.`,
    `Raw figures: [${file}](${file}).`,
  ];
  const tables = results.tables.map(
    (table) => `### ${table.title}, ${NETWORKS[table.network]}\n\n${scenarioTable(table)}`,
  );
  const page = await readFile(here('README.md'), 'utf8');
  const sections = {
    figures: `\n${[facts.join('\n'), ...tables].join('\n\n')}\n`,
    counters: `\n${counterTable(results.counters)}\n`,
    losing: `\n${losingRows(results.tables)}\n`,
  };
  const renewed = Object.entries(sections).reduce(
    (text, [name, section]) => withSection(text, name, section),
    page,
  );
  await writeFile(here('README.md'), renewed);
  say(`wrote bench/${file} and bench/README.md`);
}

/** Rows of Turngate with a failed call or a doubled execution: no ratio is worth that. */
function failed(results) {
  return results.tables
    .flatMap(({ rows }) => rows)
    .filter(({ id, failures }) => id.startsWith('turngate') && Object.keys(failures).length > 0);
}

/** Runs the tables of bench/README.md. */
export async function runPostgresSuite(args) {
  const options = readOptions(args, NAMES);
  if (options === undefined) return;
  const stopping = new AbortController();
  for (const [name, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ]) {
    process.once(name, () => {
      process.exitCode = exitCode;
      say('stopping after this slice');
      stopping.abort(new Error('interrupted'));
    });
  }
  say('starting PostgreSQL with durable settings');
  const server = await startPostgres();
  try {
    const results = await runAll(server, options, stopping.signal);
    if (options.write) await write(results);
    for (const { label, failures } of failed(results)) {
      say(`${label} FAILED: ${JSON.stringify(failures)}`);
      process.exitCode = 1;
    }
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  } finally {
    await sleep(0); // Lets the pools' last sockets close before their server goes.
    await server.stop();
  }
}
