/** The service for tests: in this process over a database of its own, or as a real process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import pino from 'pino';
import { migrate } from 'turngate/postgres';
import { openPool } from '../../dist/database/pool.js';
import { migrateShop } from '../../dist/database/schema.js';
import { buildServer } from '../../dist/http/server.js';

const mainPath = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** Makes an empty database on the test server and returns its URL. */
export async function freshDatabase(serverUrl: string): Promise<string> {
  const name = `shop_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

export interface TestShop {
  readonly base: string;
  readonly pool: pg.Pool;
  stop(): Promise<void>;
}

/** The service in this process, listening on a free port. */
export async function startShop(databaseUrl: string): Promise<TestShop> {
  const pool = openPool(databaseUrl, () => undefined);
  await migrate(pool);
  await migrateShop(pool);
  const server = await buildServer(pool, pino({ level: 'silent' }));
  const base = await server.app.listen({ host: '127.0.0.1', port: 0 });
  return {
    base,
    pool,
    async stop() {
      await server.close();
      await pool.end();
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

/** One HTTP call; a body is sent as JSON. */
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
