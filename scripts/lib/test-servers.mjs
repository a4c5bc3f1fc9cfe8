// vitest's global set-up: one server of each kind for all test files, `inject('redisUrl')` and so on.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './paths.mjs';

/** RabbitMQ and NATS are not here: the few suites that need them start them. */
const SERVERS = [
  { id: 'postgres', start: startPostgres },
  { id: 'redis', start: async () => (await load('test-servers')).startRedis() },
  { id: 'mariadb', start: async () => (await load('test-servers')).startMariadb() },
  { id: 'etcd', start: async () => (await load('test-servers')).startEtcd() },
  { id: 'zookeeper', start: async () => (await load('test-servers')).startZookeeper() },
];

/** Starts all servers that no environment variable names; returns the teardown. */
export async function setup({ provide }) {
  const stops = [];
  const stopAll = async () => void (await Promise.all(stops.splice(0).map((stop) => stop())));
  const results = await Promise.allSettled(
    SERVERS.map(async (entry) => {
      const { url, stop } = await open(entry);
      stops.push(stop);
      provide(`${entry.id}Url`, url);
    }),
  );
  const failed = results.find(({ status }) => status === 'rejected');
  if (failed === undefined) return stopAll;
  await stopAll();
  throw failed.reason;
}

/** An empty url when there is no server: `describeWith` of the suites tells of the skips. */
async function open({ id, start }) {
  const variable = `TURNGATE_TEST_${id.toUpperCase()}_URL`;
  const given = process.env[variable];
  if (given) return { url: given, stop: async () => {} };
  if (!isWanted(id)) {
    tell(`no ${id}, as TURNGATE_TEST_SERVERS says: its tests are SKIPPED`);
    return { url: '', stop: async () => {} };
  }
  try {
    const server = await start();
    tell(`${id} on port ${server.port} for this test run`);
    return { url: server.url, stop: () => server.stop() };
  } catch (error) {
    // A server that is there and does not start is a defect; one that is missing is a machine.
    if (isRequired() || (error.code !== 'MISSING' && error.code !== 'NO_BINARIES')) throw error;
    tell(`NO ${id}, its tests are SKIPPED: ${error.message} (or set ${variable})`);
    return { url: '', stop: async () => {} };
  }
}

/** While working on one store, `TURNGATE_TEST_SERVERS=redis,etcd` saves the start of the others. */
function isWanted(id) {
  const wanted = process.env.TURNGATE_TEST_SERVERS;
  return wanted === undefined || wanted.split(',').includes(id);
}

function isRequired() {
  return Boolean(process.env.CI || process.env.TURNGATE_REQUIRE_SERVERS);
}

async function startPostgres() {
  const { startEmbeddedPostgres } = await load('embedded-postgres');
  const { temporaryDir } = await load('test-servers');
  const dir = await temporaryDir('pg');
  try {
    const settings = { max_connections: '200' };
    const server = await startEmbeddedPostgres({ dataDir: dir.path, initNoSync: true, settings });
    const stop = async () => {
      await server.stop('immediate');
      await dir.remove();
    };
    return { url: server.url, port: server.port, stop };
  } catch (error) {
    await dir.remove();
    throw error;
  }
}

function load(name) {
  const entry = join(root, 'packages', name, 'dist', 'index.js');
  if (!existsSync(entry)) throw new Error('run "npm run build" first');
  return import(pathToFileURL(entry).href);
}

function tell(text) {
  process.stderr.write(`tests: ${text}\n`);
}
