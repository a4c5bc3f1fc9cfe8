// vitest's global set-up: one PostgreSQL for all test files, `inject('postgresUrl')`.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './paths.mjs';

const entry = join(root, 'packages', 'embedded-postgres', 'dist', 'index.js');

/** Starts the server, unless TURNGATE_TEST_POSTGRES_URL names one; returns the teardown. */
export async function setup({ provide }) {
  const given = process.env.TURNGATE_TEST_POSTGRES_URL;
  if (given) return void provide('postgresUrl', given);
  const dataDir = mkdtempSync(join(tmpdir(), 'turngate-test-pg-'));
  const removeData = () => rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
  try {
    const server = await start(dataDir);
    provide('postgresUrl', server.url);
    tell(`PostgreSQL on port ${server.port} for this test run, data in ${dataDir}`);
    return async () => {
      await server.stop('immediate');
      removeData();
    };
  } catch (error) {
    removeData();
    if (process.env.TURNGATE_REQUIRE_SERVERS) throw error;
    tell(`NO PostgreSQL, its tests are skipped: ${error.message}`);
    provide('postgresUrl', '');
  }
}

async function start(dataDir) {
  if (!existsSync(entry)) throw new Error('run "npm run build" first');
  const { startEmbeddedPostgres } = await import(pathToFileURL(entry).href);
  return startEmbeddedPostgres({
    dataDir,
    initNoSync: true,
    settings: { max_connections: '200' },
  });
}

function tell(text) {
  process.stderr.write(`tests: ${text}\n`);
}
