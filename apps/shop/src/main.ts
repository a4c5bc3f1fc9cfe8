/** Starts the service and stops it cleanly. Run by `npm start`. */
import pino from 'pino';
import { migrate, postgres } from 'turngate/postgres';
import { readConfig, type ShopConfig } from './config.ts';
import { startOwnedDatabase } from './database/embedded.ts';
import { openPool } from './database/pool.ts';
import { migrateShop } from './database/schema.ts';
import { buildServer } from './http/server.ts';
import { listen } from './listen.ts';

const purgeEveryMs = 600_000;

function say(line: string): void {
  process.stderr.write(`shop: ${line}\n`);
}

/** What has been started, newest last; stopped in reverse. */
const started: (() => Promise<void>)[] = [];

async function stopAll(): Promise<void> {
  for (let stop = started.pop(); stop !== undefined; stop = started.pop()) await stop();
}

async function start(config: ShopConfig): Promise<void> {
  const logger = pino({ level: config.logLevel }, pino.destination({ dest: 1, sync: false }));
  const url = config.databaseUrl ?? (await startEmbedded(config.dataDir));
  const pool = openPool(url, (error) => logger.warn({ err: error }, 'idle connection lost'));
  started.push(() => pool.end());
  await migrate(pool);
  await migrateShop(pool);
  const server = await buildServer(pool, logger);
  started.push(() => server.close());
  const port = await listen(server.app, config, say);
  const records = postgres(pool);
  const purge = (): void => {
    records.purge({ batchRows: 1_000, batches: 20 }).catch((error: unknown) => {
      logger.warn({ err: error }, 'purging expired records failed; it is tried again');
    });
  };
  setInterval(purge, purgeEveryMs).unref();
  const host = config.host.includes(':') ? `[${config.host}]` : config.host;
  say(`ready at http://${host}:${port} (API page: http://${host}:${port}/docs)`);
  say('stop with Ctrl-C');
}

async function startEmbedded(dataDir: string): Promise<string> {
  say(`starting the embedded PostgreSQL in ${dataDir}`);
  const database = await startOwnedDatabase(dataDir, say);
  started.push(() => database.stop());
  return database.url;
}

let stoppingSinceMs: number | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (stoppingSinceMs !== undefined) {
      // npm passes a terminal's Ctrl-C on, so one press arrives twice; a second press comes later.
      if (Date.now() - stoppingSinceMs > 1_000) process.exit(130);
      return;
    }
    stoppingSinceMs = Date.now();
    say('stopping: finishing what runs');
    stopAll().then(
      () => {
        say('stopped');
        process.exit(0);
      },
      (error: unknown) => {
        say(`did not stop cleanly: ${(error as Error).message}`);
        process.exit(1);
      },
    );
  });
}

try {
  await start(readConfig(process.env));
} catch (error) {
  if (stoppingSinceMs === undefined) {
    say(`cannot start: ${(error as Error).message}`);
    await stopAll().catch(() => undefined);
    process.exit(1);
  }
}
