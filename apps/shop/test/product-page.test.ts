/** The product page: one load for many readers, stock that is never old, and a limit per client. */
import { startRedis, type TestServer } from '@turngate/test-servers';
import { Redis } from 'ioredis';
import pino from 'pino';
import { redisLocks } from 'turngate/redis';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { openLocks } from '../dist/database/locks.js';
import { openDatabase } from '../dist/database/open.js';
import { databaseScope } from '../dist/database/page-cache.js';
import { buildServer, type ShopParts, type ShopServer } from '../dist/http/server.js';
import { until } from './support/channel.ts';
import { channelSecret, freshDatabase, onEachDatabase } from './support/shop.ts';

const noLimit = { perSecond: 0, burst: 1 };

interface Node {
  readonly app: ShopServer['app'];
  /** How often name and price were read from the database. */
  loads(): number;
  /** Loads wait for this. */
  hold: Promise<void> | undefined;
  stop(): Promise<void>;
}

/** A process of the shop, as far as the page can tell. */
async function startNode(
  databaseUrl: string,
  redis: Redis | undefined,
  page: ShopParts['page'],
): Promise<Node> {
  const opened = openDatabase(databaseUrl, () => undefined);
  await opened.migrate();
  let loads = 0;
  const node = { hold: undefined as Promise<void> | undefined };
  const database = {
    ...opened.database,
    session: opened.database.session.bind(opened.database),
    transaction: opened.database.transaction.bind(opened.database),
    async query(...[text, values]: Parameters<typeof opened.database.query>) {
      if (text.startsWith('SELECT name, price_minor')) {
        loads++;
        await node.hold;
      }
      return opened.database.query(text, values);
    },
  };
  const own = openLocks(undefined, () => undefined);
  const locks = redis ? redisLocks(redis) : own.store;
  const server = await buildServer(
    { ...opened, database },
    locks,
    pino({ level: 'silent' }),
    { secret: channelSecret, url: undefined },
    { redis: redis && { client: redis, scope: databaseScope(databaseUrl) }, page },
  );
  await server.app.ready();
  return Object.assign(node, {
    app: server.app,
    loads: () => loads,
    async stop() {
      await server.close();
      await opened.end();
    },
  });
}

onEachDatabase('the product page', (serverUrl) => {
  const redisMissing = inject('redisUrl') === '';
  let databaseUrl: string;
  const redises: Redis[] = [];
  let nodes: Node[] = [];
  const sku = { skuId: 'tea', name: 'Tea', priceMinor: 1250, stock: 1_000 };

  beforeAll(async () => {
    databaseUrl = await freshDatabase(serverUrl);
  });
  afterEach(async () => {
    for (const node of nodes) await node.stop();
    nodes = [];
    for (const redis of redises.splice(0)) redis.disconnect();
  });

  async function start(
    count: number,
    page: ShopParts['page'],
    redisUrl: string | undefined,
  ): Promise<Node[]> {
    for (let i = 0; i < count; i++) {
      let redis: Redis | undefined;
      if (redisUrl !== undefined) {
        redis = new Redis(redisUrl, { maxRetriesPerRequest: 1 });
        redis.on('error', () => undefined);
        redises.push(redis);
        await until(async () => redis?.status === 'ready');
      }
      nodes.push(await startNode(databaseUrl, redis, page));
    }
    return nodes;
  }

  const post = (node: Node, url: string, payload?: object) =>
    node.app.inject({ method: 'POST', url, ...(payload ? { payload } : {}) });
  const read = (node: Node, remoteAddress = '127.0.0.1') =>
    node.app.inject({ url: '/api/skus/tea', remoteAddress });

  async function buyOne(node: Node, key: string): Promise<void> {
    const made = await node.app.inject({
      method: 'POST',
      url: '/api/orders',
      payload: { userId: 'u1', skuId: 'tea', quantity: 1 },
      headers: { 'idempotency-key': key },
    });
    expect((await post(node, `/api/orders/${made.json().orderNo}/pay`)).statusCode).toBe(200);
  }

  it('is loaded once for 300 readers of one process, and answers as before', async () => {
    const [node] = (await start(1, { freshMs: 60_000, ...noLimit }, undefined)) as [Node];
    expect((await read(node)).json().code).toBe('SKU_NOT_FOUND');
    await post(node, '/api/skus', sku);
    const answers = await Promise.all(Array.from({ length: 300 }, () => read(node)));
    for (const answer of answers) expect(answer.json()).toEqual(sku);
    expect(node.loads()).toBe(1);
  });

  it.skipIf(redisMissing)('is loaded once for the readers of two processes', async () => {
    const page = { freshMs: 60_000, ...noLimit };
    const [here, there] = (await start(2, page, inject('redisUrl'))) as [Node, Node];
    let go = (): void => undefined;
    here.hold = there.hold = new Promise((resolve) => {
      go = resolve;
    });
    const reading = Promise.all(Array.from({ length: 200 }, (_, i) => read(i % 2 ? here : there)));
    await until(async () => here.loads() + there.loads() > 0);
    go();
    for (const answer of await reading) expect(answer.json()).toEqual(sku);
    expect(here.loads() + there.loads()).toBe(1);
  });

  it('lets nobody wait while an old page is there and a new one is being loaded', async () => {
    const [node] = (await start(1, { freshMs: 1, ...noLimit }, undefined)) as [Node];
    await read(node);
    let go = (): void => undefined;
    node.hold = new Promise((resolve) => {
      go = resolve;
    });
    await until(async () => {
      await read(node);
      return node.loads() === 2; // It hangs; nobody else starts another.
    });
    const answers = await Promise.all(Array.from({ length: 50 }, () => read(node)));
    for (const answer of answers) expect(answer.json()).toEqual(sku);
    expect(node.loads()).toBe(2);
    go();
  });

  it('shows each sale to whoever asks after it, on every process, among many readers', async () => {
    const redisUrl = redisMissing ? undefined : inject('redisUrl');
    const [here, there] = (await start(2, { freshMs: 60_000, ...noLimit }, redisUrl)) as [
      Node,
      Node,
    ];
    let reading = true;
    const crowd = Promise.all(
      Array.from({ length: 6 }, async (_, i) => {
        while (reading) await read(i % 2 ? here : there);
      }),
    );
    for (let sold = 1; sold <= 15; sold++) {
      await buyOne(here, `sale-${sold}`);
      const seen = await Promise.all([here, there, there, here].map((node) => read(node)));
      expect(seen.map((answer) => answer.json().stock)).toEqual(Array(4).fill(1_000 - sold));
    }
    reading = false;
    await crowd;
  });

  const tight = { freshMs: 60_000, perSecond: 1, burst: 5 };

  async function allowed(asked: readonly Node[], count: number, address: string): Promise<number> {
    let passed = 0;
    for (let i = 0; i < count; i++) {
      const answer = await read(asked[i % asked.length] as Node, address);
      if (answer.statusCode === 200) passed++;
      else {
        expect([answer.statusCode, answer.json().code]).toEqual([429, 'TOO_MANY_REQUESTS']);
        expect(answer.headers['content-type']).toContain('application/problem+json');
        expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      }
    }
    return passed;
  }

  it('refuses an address that asks too often, and no other, on no other page', async () => {
    const [node] = (await start(1, tight, undefined)) as [Node];
    const startMs = performance.now();
    const passed = await allowed([node], 40, '10.0.0.1');
    const refilled = (performance.now() - startMs) / 1_000;
    expect(passed).toBeGreaterThanOrEqual(5);
    expect(passed).toBeLessThanOrEqual(5 + Math.ceil(refilled));
    expect((await read(node, '10.0.0.2')).statusCode).toBe(200);
    const other = { url: '/api/accounts/u1', remoteAddress: '10.0.0.1' };
    expect((await node.app.inject(other)).statusCode).toBe(200);
    const described = (await node.app.inject({ url: '/openapi.json' })).json();
    const { responses } = described.paths['/api/skus/{skuId}'].get;
    expect(responses['429'].description).toContain('TOO_MANY_REQUESTS');
  });

  it.skipIf(redisMissing)('counts over all processes that share a Redis', async () => {
    const both = await start(2, tight, inject('redisUrl'));
    const startMs = performance.now();
    const passed = await allowed(both, 40, '10.0.0.3');
    const refilled = (performance.now() - startMs) / 1_000;
    expect(passed).toBeLessThanOrEqual(5 + Math.ceil(refilled));
  });
});

const missing = inject('redisUrl') === '' || inject('postgresUrl') === '';
describe.skipIf(missing)('the product page without its Redis', () => {
  let redis: TestServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('goes on when Redis dies: loads and limits are then of each process', async () => {
    const databaseUrl = await freshDatabase(inject('postgresUrl'));
    const client = new Redis(redis.url, { maxRetriesPerRequest: 1 });
    client.on('error', () => undefined);
    const node = await startNode(databaseUrl, client, { freshMs: 1, perSecond: 1, burst: 3 });
    const sku = { skuId: 'tea', name: 'Tea', priceMinor: 1250, stock: 3 };
    await node.app.inject({ method: 'POST', url: '/api/skus', payload: sku });
    expect((await node.app.inject({ url: '/api/skus/tea' })).json()).toEqual(sku);
    await redis.kill();
    await until(async () => client.status !== 'ready');
    const statuses: number[] = [];
    for (let i = 0; i < 8; i++) {
      const answer = await node.app.inject({ url: '/api/skus/tea', remoteAddress: '10.0.0.4' });
      statuses.push(answer.statusCode);
      if (answer.statusCode === 200) expect(answer.json()).toEqual(sku);
    }
    expect(statuses.slice(0, 3)).toEqual([200, 200, 200]);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    await node.stop();
    client.disconnect();
  });
});
