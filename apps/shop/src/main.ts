/** Starts the service and stops it cleanly. Run by `npm start`. */
import pino from 'pino';
import { createBarrier } from 'turngate/saga';
import type { ChannelAccess } from './channel/client.ts';
import { startChannel } from './channel/start.ts';
import { developmentSecret, readConfig, type ShopConfig } from './config.ts';
import { startOwnedDatabase } from './database/embedded.ts';
import { openLocks } from './database/locks.ts';
import { openDatabase } from './database/open.ts';
import { databaseScope } from './database/page-cache.ts';
import { buildServer } from './http/server.ts';
import { listen } from './listen.ts';
import { isWorker, onNews, startProcesses } from './processes.ts';

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
  if (isWorker) {
    const { channel } = await serve(config);
    onNews(({ channelUrl }) => {
      channel.url = channelUrl;
    });
    return;
  }
  const databaseUrl = config.databaseUrl ?? (await startEmbedded(config.dataDir));
  const running = config.processes > 1 ? startMany : startHere;
  const { port, tell } = await running({ ...config, databaseUrl });
  if (config.channelUrl === undefined) {
    const simulator = await startChannel(config, port, say);
    started.push(() => simulator.stop());
    tell(simulator.url);
  }
  const host = config.host.includes(':') ? `[${config.host}]` : config.host;
  say(`ready at http://${host}:${port} (API page: http://${host}:${port}/docs)`);
  if (config.channelSecret === developmentSecret) {
    say('CHANNEL_SECRET is not set: callbacks are signed with a secret everybody knows');
  }
  say('stop with Ctrl-C');
}

interface Running {
  readonly port: number;
  tell(channelUrl: string): void;
}

async function startHere(config: ShopConfig): Promise<Running> {
  const { port, channel } = await serve(config);
  return {
    port,
    tell(channelUrl) {
      channel.url = channelUrl;
    },
  };
}

async function startMany(config: ShopConfig): Promise<Running> {
  const env = { DATABASE_URL: config.databaseUrl as string };
  const processes = await startProcesses(config.processes, env, say);
  started.push(() => processes.stop());
  return { port: processes.port, tell: (channelUrl) => processes.tell({ channelUrl }) };
}

/** The service in this process. */
async function serve(config: ShopConfig): Promise<{ port: number; channel: ChannelAccess }> {
  const logger = pino({ level: config.logLevel }, pino.destination({ dest: 1, sync: false }));
  const warn = (error: Error): void => logger.warn({ err: error }, 'connection lost');
  const database = openDatabase(config.databaseUrl as string, warn);
  started.push(() => database.end());
  await database.migrate();
  const locks = openLocks(config.locksUrl, warn);
  started.push(() => locks.end());
  const channel: ChannelAccess = { secret: config.channelSecret, url: config.channelUrl };
  const { stockServiceUrl, stockServiceSecret: secret } = config;
  const depot = stockServiceUrl === undefined ? undefined : { url: stockServiceUrl, secret };
  const redis = locks.redis && {
    client: locks.redis,
    scope: databaseScope(config.databaseUrl as string),
  };
  const { amqpUrl, page, archive } = config;
  const parts = { depot, amqpUrl, redis, page, archive };
  const server = await buildServer(database, locks.store, logger, channel, parts);
  started.push(() => server.close());
  const port = await listen(server.app, config, say);
  const barrier = createBarrier();
  const purge = (): void => {
    const limit = { batchRows: 1_000, batches: 20 };
    Promise.all([
      database.records.purge(limit),
      database.staged.purge(limit),
      barrier.purge(database.database),
    ]).catch((error: unknown) => {
      logger.warn({ err: error }, 'purging expired records failed; it is tried again');
    });
  };
  setInterval(purge, purgeEveryMs).unref();
  return { port, channel };
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
    if (!isWorker) say('stopping: finishing what runs');
    stopAll().then(
      () => {
        if (!isWorker) say('stopped');
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
