/**
 * The whole of docs/running-on-real-servers.md: MariaDB, Redis and RabbitMQ, three processes behind one
 * port, `kill -9` of any of them in the middle of everything. TURNGATE_SEED repeats the choice of the
 * processes, TURNGATE_STORM_CUSTOMERS makes the storm longer.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lookForProgram, startRabbitmq, type TestServer } from '@turngate/test-servers';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createChance } from '../dist/lab/chance.js';
import { until } from './support/channel.ts';
import {
  type Answer,
  call,
  flood,
  freshDatabase,
  makeSku,
  type ShopProcess,
  spawnShop,
} from './support/shop.ts';

const price = 1_250; // What makeSku asks: 12 points.
const seed = Number(process.env['TURNGATE_SEED'] ?? Date.now() % 1_000_000);
const kills = 3;
const customers = Number(process.env['TURNGATE_STORM_CUSTOMERS'] ?? 36);
const saleUnits = Math.floor(customers / 4);
const limitMs = 300_000;

const missing =
  lookForProgram('rabbitmq-server') === undefined ||
  inject('mariadbUrl') === '' ||
  inject('redisUrl') === '';
if (missing) {
  const why = 'no MariaDB, no Redis or no RabbitMQ in this test run';
  if (process.env['CI'] || process.env['TURNGATE_REQUIRE_SERVERS']) throw new Error(why);
  console.warn(`SKIPPED "MariaDB, Redis and RabbitMQ": ${why}`);
}

describe.skipIf(missing)('three processes on MariaDB, Redis and RabbitMQ', () => {
  let rabbit: TestServer;
  let shop: ShopProcess;
  const dataDir = mkdtempSync(join(tmpdir(), 'turngate-real-'));

  beforeAll(async () => {
    rabbit = await startRabbitmq();
    shop = await spawnShop({
      DATABASE_URL: await freshDatabase(inject('mariadbUrl')),
      LOCKS_URL: inject('redisUrl'),
      AMQP_URL: rabbit.url,
      SHOP_PROCESSES: '3',
      TURNGATE_DATA_DIR: dataDir,
      PORT: '0',
    });
  }, 300_000);
  afterAll(async () => {
    await shop?.killGroup();
    await rabbit?.stop();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  });

  const born = (): number[] =>
    [...shop.said().matchAll(/process (\d+) listens/g)].map(([, pid]) => Number(pid));
  const dead = (): Set<number> =>
    new Set([...shop.said().matchAll(/process (\d+) ended/g)].map(([, pid]) => Number(pid)));
  const alive = (): number[] => born().filter((pid) => !dead().has(pid));

  /** Asks again until there is an answer: a killed process may have been at it. */
  async function insist(path: string, body?: unknown, key?: string): Promise<Answer> {
    const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
    let answer: Answer | undefined;
    await until(async () => {
      answer = await call(`${shop.base}${path}`, 'POST', body, headers);
      return answer.status < 500 && answer.body.code !== 'REQUEST_IN_PROGRESS';
    }, limitMs);
    return answer as Answer;
  }

  it('stays clean through kill -9 of any of them, and every paid order gives its points once', async () => {
    console.info(`seed ${seed}`);
    const chance = createChance(seed, 'kills');
    const skuId = await makeSku(shop.base, customers);
    const saleId = await makeSku(shop.base, saleUnits);
    const activity = { activityId: 'real', skuId: saleId, units: saleUnits, perUser: 1 };
    expect((await insist('/api/activities', activity)).status).toBe(201);
    let done = 0;
    const storm = flood(customers, 16, async (i) => {
      const userId = `u${i}`;
      const order = { userId, skuId, quantity: 1 };
      const [made, again] = await Promise.all([
        insist('/api/orders', order, `key-${i}`),
        insist('/api/orders', order, `key-${i}`),
      ]);
      const { orderNo } = made.body;
      const bought = await insist('/api/activities/real/purchase', { userId });
      // A third pays through the channel, which calls back whichever process answers.
      if (i % 3 === 0) {
        const { payUrl } = (await insist(`/api/orders/${orderNo}/payments`, {})).body;
        await until(async () => (await call(payUrl, 'POST')).status === 200, limitMs);
      } else await insist(`/api/orders/${orderNo}/pay`);
      done++;
      return { orderNo: orderNo as string, again: again.body.orderNo, bought };
    });
    for (let kill = 1; kill <= kills; kill++) {
      await until(async () => done >= (kill * customers) / (kills + 2), limitMs);
      await until(async () => alive().length === 3, limitMs);
      const victim = alive()[chance.between(0, 2)] as number;
      process.kill(victim, 'SIGKILL');
      // Else the next turn could take it for alive and kill it again.
      await until(async () => dead().has(victim), limitMs);
    }
    const answers = await storm;
    expect(dead().size).toBe(kills);
    for (const { orderNo, again } of answers) expect(again).toBe(orderNo);
    expect(new Set(answers.map(({ orderNo }) => orderNo)).size).toBe(customers);
    const sold = answers.flatMap(({ bought }) => bought.body.orderNo ?? []);
    expect([sold.length, new Set(sold).size]).toEqual([saleUnits, saleUnits]);
    await flood(customers, 8, (i) => {
      const path = `/api/orders/${answers[i]?.orderNo}`;
      const isPaid = async () => (await call(`${shop.base}${path}`)).body.status === 'PAID';
      return until(isPaid, limitMs);
    });
    expect((await call(`${shop.base}/api/skus/${skuId}`)).body.stock).toBe(0);
    await flood(customers, 8, (i) => {
      const path = `/api/accounts/u${i}/points`;
      const points = async () => (await call(`${shop.base}${path}`)).body.points;
      return until(async () => (await points()) === Math.floor(price / 100), limitMs);
    });
    expect((await call(`${shop.base}/api/audit`)).body.violations).toEqual([]);
    await until(async () => alive().length === 3, limitMs);
    expect(await shop.interrupt()).toBe(0);
    expect(shop.said()).toContain('stopped');
  }, 900_000);
});
