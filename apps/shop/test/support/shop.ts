/** The service for tests: in this process over a database of its own, or as a real process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import pino from 'pino';
import type { SqlDatabase } from 'turngate/contract';
import { describe, inject } from 'vitest';
import { openLocks } from '../../dist/database/locks.js';
import { openDatabase } from '../../dist/database/open.js';
import { openPool } from '../../dist/database/pool.js';
import { buildServer, type ShopParts } from '../../dist/http/server.js';

const mainPath = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

const databaseKinds = { PostgreSQL: inject('postgresUrl'), MariaDB: inject('mariadbUrl') };

/**
 * The same tests on every kind of database the shop runs on. One that this test run does not have is
 * skipped and counted, never passed; where servers are required it fails.
 */
export function onEachDatabase(title: string, body: (serverUrl: string) => void): void {
  for (const [kind, serverUrl] of Object.entries(databaseKinds)) {
    const missing = serverUrl === '';
    const why = `no ${kind} in this test run`;
    if (missing && (process.env['CI'] || process.env['TURNGATE_REQUIRE_SERVERS'])) {
      throw new Error(why);
    }
    describe.skipIf(missing)(`${title} on ${kind}`, () => body(serverUrl));
  }
}

/** Makes an empty database on the test server and returns its URL. */
export async function freshDatabase(serverUrl: string): Promise<string> {
  const name = `shop_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const create = `CREATE DATABASE ${name}`;
  if (serverUrl.startsWith('mysql:')) {
    const connection = await createConnection(serverUrl);
    await connection.query(create);
    await connection.end();
  } else {
    const client = new pg.Client({ connectionString: serverUrl });
    await client.connect();
    await client.query(create);
    await client.end();
  }
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

export const channelSecret = 'test-secret';

export interface TestShop {
  readonly base: string;
  readonly databaseUrl: string;
  /** Looks into the database from outside; `$1`, `$2`, … on every kind. */
  readonly query: SqlDatabase['query'];
  /** A PostgreSQL pool of the test's own, for what only PostgreSQL can show. */
  readonly pool: pg.Pool;
  readonly channel: { readonly secret: string; url: string | undefined };
  stop(): Promise<void>;
}

/** The service in this process, listening on a free port. */
export async function startShop(databaseUrl: string, parts: ShopParts = {}): Promise<TestShop> {
  const database = openDatabase(databaseUrl, () => undefined);
  await database.migrate();
  const channel: TestShop['channel'] = { secret: channelSecret, url: undefined };
  const locks = openLocks(undefined, () => undefined);
  const logger = pino({ level: 'silent' });
  const server = await buildServer(database, locks.store, logger, channel, parts);
  const base = await server.app.listen({ host: '127.0.0.1', port: 0 });
  const pool = openPool(databaseUrl, () => undefined);
  return {
    base,
    databaseUrl,
    query: (text, values) => database.database.query(text, values),
    pool,
    channel,
    async stop() {
      await server.close();
      await pool.end();
      await database.end();
    },
  };
}

export interface ShopProcess {
  readonly base: string;
  readonly child: ChildProcess;
  /** Everything the process said on stderr so far. */
  said(): string;
  /** SIGKILL to its whole process group. */
  killGroup(): Promise<void>;
  /** SIGINT, as Ctrl-C; resolves to the exit code. */
  interrupt(): Promise<number | null>;
}

/** Three processes behind one port on a database of their own. */
export async function spawnThree(serverUrl: string, dataDir: string): Promise<ShopProcess> {
  return await spawnShop({
    DATABASE_URL: await freshDatabase(serverUrl),
    LOCKS_URL: inject('redisUrl'), // Empty where this run has none: then locks are per process.
    SHOP_PROCESSES: '3',
    TURNGATE_DATA_DIR: dataDir,
    PORT: '0',
  });
}

/** The service as its own process group, as `npm start` runs it. */
export async function spawnShop(env: Record<string, string>): Promise<ShopProcess> {
  const child = spawn(process.execPath, [mainPath], {
    detached: true,
    env: { ...process.env, LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  const ended = once(child, 'exit') as Promise<[number | null]>;
  const base = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const found = /ready at (http:\/\/\S+)/.exec(text);
      if (found !== null) resolve(found[1] as string);
    });
    void ended.then(([code]) => reject(new Error(`the shop ended with ${code}: ${text}`)));
  });
  return {
    base,
    child,
    said: () => text,
    async killGroup() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      process.kill(-(child.pid as number), 'SIGKILL');
      await ended;
    },
    async interrupt() {
      process.kill(child.pid as number, 'SIGINT');
      const [code] = await ended;
      return code;
    },
  };
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely in tests.
  readonly body: any;
}

/** One HTTP call, which no call of a service outlives; a body is sent as JSON. */
export async function call(
  url: string,
  method = 'GET',
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  const payload = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(url, {
    method,
    headers: { ...json, ...headers },
    signal: AbortSignal.timeout(90_000),
    ...(body === undefined ? {} : { body: payload }),
  });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  return {
    status: response.status,
    headers: response.headers,
    body: isJson ? JSON.parse(text) : text,
  };
}

/** Makes an article and returns its number. */
export async function makeSku(base: string, stock: number): Promise<string> {
  const skuId = `sku-${Math.random().toString(36).slice(2, 10)}`;
  const made = await call(`${base}/api/skus`, 'POST', {
    skuId,
    name: 'Tea',
    priceMinor: 1250,
    stock,
  });
  if (made.status !== 201) throw new Error(`no article: ${JSON.stringify(made.body)}`);
  return skuId;
}

let orders = 0;

/** Makes an order and returns its number. */
export async function makeOrder(base: string, skuId: string, quantity = 1): Promise<string> {
  const headers = { 'idempotency-key': `order-${process.pid}-${++orders}-${Math.random()}` };
  const body = { userId: 'u1', skuId, quantity };
  const made = await call(`${base}/api/orders`, 'POST', body, headers);
  if (made.status !== 201) throw new Error(`no order: ${JSON.stringify(made.body)}`);
  return made.body.orderNo;
}

/** Runs `count` calls, at most `inFlight` at a time. */
export async function flood<T>(
  count: number,
  inFlight: number,
  run: (index: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) results[index] = await run(index);
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return results;
}

/** A port nobody listens on right now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
