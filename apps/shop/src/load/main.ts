/** `npm run load`: four schemes, from 500 to 10,000 requests a second, on PostgreSQL and MariaDB. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startEmbeddedPostgres } from '@turngate/embedded-postgres';
import { startMariadb, startRedis } from '@turngate/test-servers';
import type { StepOrder, StepResult } from './generator.ts';
import { help, type LoadOptions, readOptions } from './options.ts';
import { chartOf, type Measured, pageOf, ratiosOf } from './report.ts';
import { schemeNames } from './schemes.ts';

const say = (line: string): void => void process.stderr.write(`load: ${line}\n`);

/** What has been started; stopped in reverse, whatever happens. */
const started: (() => Promise<unknown>)[] = [];

function child(file: string, env: Record<string, string> = {}): ChildProcess {
  const path = fileURLToPath(new URL(`./${file}.js`, import.meta.url));
  const made = fork(path, { env: { ...process.env, ...env }, stdio: ['ignore', 2, 2, 'ipc'] });
  started.push(async () => {
    if (made.exitCode === null && made.kill('SIGKILL')) await once(made, 'exit');
  });
  return made;
}

/** The child's next word, or its end as an error. */
async function wordOf<T>(from: ChildProcess): Promise<T> {
  const ended = new AbortController();
  const onExit = (code: number | null): void => ended.abort(new Error(`a process ended: ${code}`));
  from.once('exit', onExit);
  try {
    const [word] = await once(from, 'message', { signal: ended.signal });
    return word as T;
  } finally {
    from.removeListener('exit', onExit);
  }
}

async function startDatabase(name: string): Promise<string> {
  if (name === 'mariadb') {
    const server = await startMariadb();
    started.push(() => server.stop());
    const { createConnection } = await import('mysql2/promise');
    const connection = await createConnection(server.url);
    await connection.query('CREATE DATABASE turngate_load');
    await connection.end();
    return new URL('/turngate_load', server.url).href;
  }
  const dataDir = await mkdtemp(join(tmpdir(), 'turngate-load-'));
  started.push(() => rm(dataDir, { recursive: true, force: true }));
  const server = await startEmbeddedPostgres({ dataDir, settings: { max_connections: '100' } });
  started.push(() => server.stop('immediate'));
  return server.url;
}

async function measure(
  database: string,
  options: LoadOptions,
  redisUrl: string,
): Promise<Measured[]> {
  say(`starting ${database}`);
  const url = await startDatabase(database);
  const server = child('server', { LOAD_DATABASE_URL: url, LOAD_REDIS_URL: redisUrl });
  const { base } = await wordOf<{ base: string }>(server);
  const generator = child('generator');
  const cpuUs = async (): Promise<number> =>
    ((await (await fetch(`${base}/cpu`)).json()) as { us: number }).us;
  const measured: Measured[] = [];
  const { rates, stepS } = options;
  let firstOrder = 1;
  for (const rate of rates) {
    for (const scheme of schemeNames) {
      await fetch(`${base}/reset`, { method: 'POST' });
      const before = await cpuUs();
      const order: StepOrder = { base, scheme, rate, seconds: stepS, firstOrder };
      generator.send(order);
      const result = await wordOf<StepResult>(generator);
      const answered = Object.values(result.codes).reduce((sum, n) => sum + n, 0);
      const perRequest = ((await cpuUs()) - before) / Math.max(1, answered);
      measured.push({ database, scheme, rate, cpuUs: perRequest, ...result });
      const codes = JSON.stringify(result.codes);
      say(
        `${database} ${scheme} ${rate}/s: ${Math.round(result.perSecond)}/s, p99 ${result.p99Ms} ms, ${codes}`,
      );
    }
    // No step meets an order of another: the gate remembers answers, which would count as repeats.
    firstOrder += rate * stepS;
  }
  return measured;
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) return void process.stdout.write(help);
  const redis = await startRedis();
  started.push(() => redis.stop());
  const all: Measured[] = [];
  for (const database of options.databases)
    all.push(...(await measure(database, options, redis.url)));
  for (const { database, scheme, ceiling, cpu } of ratiosOf(all)) {
    process.stdout.write(
      `${database.padEnd(9)} ${scheme.padEnd(19)} ceiling ${ceiling.toFixed(2)}  CPU ${cpu.toFixed(2)}\n`,
    );
  }
  if (!options.write) return;
  const docs = fileURLToPath(new URL('../../../../docs/', import.meta.url));
  await writeFile(join(docs, 'load.md'), pageOf(all, new Date().toISOString().slice(0, 10)));
  await writeFile(join(docs, 'load.svg'), chartOf(all));
  say('wrote docs/load.md and docs/load.svg');
}

async function stopAll(): Promise<void> {
  for (let stop = started.pop(); stop !== undefined; stop = started.pop()) await stop();
}

process.once('SIGINT', () => void stopAll().then(() => process.exit(0)));
try {
  await main();
} catch (error) {
  say((error as Error).message);
  process.exitCode = 1;
} finally {
  await stopAll();
}
