/** The service as a process: start, Ctrl-C, kill -9 in the middle, a database that goes away. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '@turngate/embedded-postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, flood, makeOrder, makeSku, type ShopProcess, spawnShop } from './support/shop.ts';

describe('the service as a process', () => {
  let dir: string;
  const running = new Set<ShopProcess>();

  async function spawn(env: Record<string, string>): Promise<ShopProcess> {
    const shop = await spawnShop(env);
    running.add(shop);
    return shop;
  }

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'turngate-shop-'));
  });
  afterAll(async () => {
    for (const shop of running)
      if (shop.child.exitCode === null) await shop.killGroup().catch(() => {});
    await rm(dir, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  });

  it('pays once though its group is killed in the middle and every caller retries; Ctrl-C is 0', async () => {
    const env = { TURNGATE_DATA_DIR: join(dir, 'data'), PORT: '0' };
    const first = await spawn(env);
    const skuId = await makeSku(first.base, 50);
    const orders = await flood(20, 20, () => makeOrder(first.base, skuId));
    let answered = 0;
    const storm = flood(200, 200, async (i) => {
      const url = `${first.base}/api/orders/${orders[i % 20]}/pay`;
      return await call(url, 'POST').then(
        (answer) => {
          answered++;
          return answer;
        },
        () => undefined,
      );
    });
    await expect.poll(() => answered, { interval: 1, timeout: 20_000 }).toBeGreaterThan(0);
    await first.killGroup();
    const before = await storm;
    const second = await spawn(env);
    const after = await flood(200, 64, (i) =>
      call(`${second.base}/api/orders/${orders[i % 20]}/pay`, 'POST'),
    );
    expect(new Set(after.map((answer) => answer.status))).toEqual(new Set([200]));
    // Whoever had an answer before the kill gets the same one after it.
    before.forEach((answer, i) => {
      if (answer !== undefined) expect(answer.body).toEqual(after[i]?.body);
    });
    expect((await call(`${second.base}/api/skus/${skuId}`)).body.stock).toBe(30);
    expect((await call(`${second.base}/api/audit`)).body.violations).toEqual([]);
    expect(await second.interrupt()).toBe(0);
    expect(second.said()).toContain('stopped');
  }, 120_000);

  it('answers 503 with Retry-After while the database is down, and recovers without a restart', async () => {
    const dataDir = join(dir, 'db');
    const database = await startEmbeddedPostgres({ dataDir, initNoSync: true });
    const shop = await spawn({ DATABASE_URL: database.url, PORT: '0' });
    const skuId = await makeSku(shop.base, 5);
    const [orderNo, other] = await flood(2, 2, () => makeOrder(shop.base, skuId));
    await database.stop('immediate');
    for (const path of [`/api/orders/${orderNo}/pay`, `/api/orders/${other}/cancel`]) {
      const down = await call(`${shop.base}${path}`, 'POST');
      expect([down.status, down.body.code]).toEqual([503, 'STORE_UNAVAILABLE']);
      expect(Number(down.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    expect((await call(`${shop.base}/api/skus/${skuId}`)).status).toBe(503);
    expect((await call(`${shop.base}/healthz`)).status).toBe(503);
    const again = await startEmbeddedPostgres({ dataDir, port: database.port });
    await expect
      .poll(async () => (await call(`${shop.base}/healthz`)).status, { timeout: 20_000 })
      .toBe(200);
    expect((await call(`${shop.base}/api/orders/${orderNo}/pay`, 'POST')).status).toBe(200);
    expect((await call(`${shop.base}/api/audit`)).body.violations).toEqual([]);
    expect(await shop.interrupt()).toBe(0);
    await again.stop();
  }, 120_000);

  it('takes the next free port when the default is taken and says so; a wanted port is not replaced', async () => {
    const database = await startEmbeddedPostgres({ dataDir: join(dir, 'ports'), initNoSync: true });
    const taken = createServer().listen(3000, '127.0.0.1');
    await new Promise<void>((resolve) =>
      taken.once('listening', resolve).once('error', () => resolve()),
    );
    const shop = await spawn({ DATABASE_URL: database.url, PORT: '' });
    expect(shop.said()).toContain('port 3000 is taken');
    expect(Number(new URL(shop.base).port)).toBeGreaterThan(3000);
    await expect(spawn({ DATABASE_URL: database.url, PORT: '3000' })).rejects.toThrow(
      /ended with 1.*EADDRINUSE/s,
    );
    taken.close();
    expect(await shop.interrupt()).toBe(0);
    await database.stop();
  }, 60_000);

  it.each([
    ['PORT', 'http', 'PORT must be an integer'],
    ['DATABASE_URL', 'oracle://x', 'DATABASE_URL must start with'],
    ['LOG_LEVEL', 'loud', 'LOG_LEVEL must be one of'],
    ['PAGE_PER_SECOND', '-1', 'PAGE_PER_SECOND must be an integer from 0'],
    ['ARCHIVE_AT', '24:00', 'ARCHIVE_AT must be a time'],
    ['ARCHIVE_TIME_ZONE', 'Mars/Base', 'ARCHIVE_TIME_ZONE must be a time zone'],
  ])('refuses a bad %s before anything starts', async (name, value, message) => {
    await expect(spawn({ TURNGATE_DATA_DIR: join(dir, 'none'), [name]: value })).rejects.toThrow(
      message,
    );
  });
});
