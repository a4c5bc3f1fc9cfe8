/** Starts the depot as a process of its own, on a database of its own. */
import pino from 'pino';
import { readConfig } from '../config.ts';
import { openDatabase } from '../database/open.ts';
import { listen } from '../listen.ts';
import { buildDepot } from './server.ts';

function say(line: string): void {
  process.stderr.write(`depot: ${line}\n`);
}

try {
  const config = readConfig(process.env);
  if (config.databaseUrl === undefined) throw new RangeError('DATABASE_URL must be set');
  const logger = pino({ level: config.logLevel }, pino.destination({ dest: 1, sync: false }));
  const warn = (error: Error): void => logger.warn({ err: error }, 'connection lost');
  const database = openDatabase(config.databaseUrl, warn);
  await database.migrate();
  const depot = await buildDepot(database, logger, config.stockServiceSecret);
  const port = await listen(depot.app, config, say);
  say(`ready at http://${config.host}:${port}`);
  let stopping = false;
  const stop = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    await depot.close();
    await database.end();
    process.exit(0);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop());
} catch (error) {
  say(`cannot start: ${(error as Error).message}`);
  process.exit(1);
}
