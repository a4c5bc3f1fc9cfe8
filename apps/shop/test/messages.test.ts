/** A paid order's message: one row of points and one notification, whatever is repeated or killed. */
import { lookForProgram, startRabbitmq, type TestServer } from '@turngate/test-servers';
import { connect } from 'amqplib';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import {
  call,
  flood,
  freshDatabase,
  makeOrder,
  makeSku,
  onEachDatabase,
  type ShopProcess,
  spawnShop,
  startShop,
  type TestShop,
} from './support/shop.ts';

const price = 1_250; // What makeSku asks: 12 points.

onEachDatabase('messages in one process', (serverUrl) => {
  let shop: TestShop;
  beforeAll(async () => {
    shop = await startShop(await freshDatabase(serverUrl));
  });
  afterAll(() => shop.stop());

  const count = async (table: string): Promise<number> => {
    const { rows } = await shop.query(`SELECT count(*) AS n FROM ${table}`, []);
    return Number(rows[0]?.['n']);
  };
  const points = async (): Promise<number> =>
    (await call(`${shop.base}/api/accounts/u1/points`)).body.points;

  it('gives points and one notification per paid order, once when its message is sent again', async () => {
    expect(await points()).toBe(0);
    const skuId = await makeSku(shop.base, 50);
    const orders = await flood(10, 5, () => makeOrder(shop.base, skuId, 2));
    await makeOrder(shop.base, skuId); // Not paid: no message.
    await flood(30, 6, (i) => call(`${shop.base}/api/orders/${orders[i % 10]}/pay`, 'POST'));
    await expect.poll(() => count('shop_notification'), { timeout: 20_000 }).toBe(10);
    await expect.poll(points, { timeout: 20_000 }).toBe(10 * Math.floor((2 * price) / 100));
    // As if the relay had died before it marked anything as sent.
    await shop.query('UPDATE turngate_outbox_lane SET sent_sequence = 0', []);
    await expect.poll(async () => await unsent(), { timeout: 20_000 }).toBe(0);
    expect([await count('shop_points'), await count('shop_notification')]).toEqual([10, 10]);
    expect((await call(`${shop.base}/api/audit`)).body.violations).toEqual([]);
  });

  const unsent = async (): Promise<number> => {
    const text =
      'SELECT count(*) AS n FROM turngate_outbox_lane WHERE sent_sequence < last_sequence';
    return Number((await shop.query(text, [])).rows[0]?.['n']);
  };

  it('the audit sees wrong points, effects without a message and marks without their effect', async () => {
    const skuId = await makeSku(shop.base, 5);
    const [a, b, c] = (await flood(3, 3, () => makeOrder(shop.base, skuId))) as [
      string,
      string,
      string,
    ];
    const before = await count('shop_points');
    for (const orderNo of [a, b, c]) await call(`${shop.base}/api/orders/${orderNo}/pay`, 'POST');
    await expect.poll(() => count('shop_notification'), { timeout: 20_000 }).toBe(before + 3);
    await expect.poll(() => count('shop_points'), { timeout: 20_000 }).toBe(before + 3);
    await shop.query('UPDATE shop_points SET points = 13 WHERE order_no = $1', [a]);
    await shop.query('DELETE FROM turngate_inbox WHERE message_id = $1', [b]);
    await shop.query('DELETE FROM shop_points WHERE order_no = $1', [c]);
    const { violations } = (await call(`${shop.base}/api/audit`)).body;
    const found = violations.map(({ rule, id }: { rule: string; id: string }) => `${rule} ${id}`);
    expect(found.sort()).toEqual([
      `CONSUMED_WITHOUT_EFFECT shop.points/${c}`,
      `EFFECT_WITHOUT_MESSAGE ${b}`,
      `EFFECT_WITHOUT_MESSAGE ${b}`,
      `POINTS_MISMATCH ${a}`,
    ]);
  });
});

const missing = lookForProgram('rabbitmq-server') === undefined || inject('postgresUrl') === '';
if (missing) {
  const why = 'no RabbitMQ or no PostgreSQL in this test run';
  if (process.env['CI'] || process.env['TURNGATE_REQUIRE_SERVERS']) throw new Error(why);
  console.warn(`SKIPPED "messages through RabbitMQ": ${why}`);
}

describe.skipIf(missing)('messages through RabbitMQ', () => {
  let rabbit: TestServer;
  let shops: ShopProcess[] = [];

  beforeAll(async () => {
    rabbit = await startRabbitmq();
  });
  afterEach(async () => {
    for (const shop of shops) if (shop.child.exitCode === null) await shop.killGroup();
    shops = [];
  });
  afterAll(() => rabbit.stop());

  async function spawn(databaseUrl: string): Promise<ShopProcess> {
    const env = { DATABASE_URL: databaseUrl, AMQP_URL: rabbit.url, PORT: '0' };
    const shop = await spawnShop(env);
    shops.push(shop);
    return shop;
  }

  it('gives points once though a node is killed, the broker too, and everything is sent twice', async () => {
    const databaseUrl = await freshDatabase(inject('postgresUrl'));
    const first = await spawn(databaseUrl);
    const second = await spawn(databaseUrl);
    const skuId = await makeSku(second.base, 100);
    const orders = await flood(40, 4, () => makeOrder(second.base, skuId));
    const pay = (from: number, to: number): Promise<unknown> =>
      flood(to - from, 4, (i) => call(`${second.base}/api/orders/${orders[from + i]}/pay`, 'POST'));
    const points = async (): Promise<number> =>
      (await call(`${second.base}/api/accounts/u1/points`)).body.points;
    await pay(0, 20);
    await expect.poll(points, { timeout: 30_000 }).toBeGreaterThan(0);
    await first.killGroup();
    await rabbit.kill();
    await pay(20, 40); // Without a broker, payments go on.
    await rabbit.restart();
    await expect.poll(points, { timeout: 120_000 }).toBe(40 * Math.floor(price / 100));
    await republish(orders);
    await expect.poll(() => ready('shop.points'), { timeout: 30_000 }).toBe(0);
    expect(await points()).toBe(40 * Math.floor(price / 100));
    await expect
      .poll(async () => (await call(`${second.base}/api/audit`)).body.violations, {
        timeout: 20_000,
      })
      .toEqual([]);
    expect(await ready('turngate.shop.dead')).toBe(0);
    expect(await second.interrupt()).toBe(0);
  }, 240_000);

  /** Sends what was sent before: the same ids. */
  async function republish(orders: readonly string[]): Promise<void> {
    const model = await connect(rabbit.url);
    const channel = await model.createConfirmChannel();
    for (const orderNo of orders) {
      const payload = JSON.stringify({ orderNo, userId: 'u1', amountMinor: price });
      channel.publish('turngate.shop', 'order.paid', Buffer.from(payload), {
        messageId: orderNo,
        headers: { 'turngate-topic': 'order.paid' },
      });
    }
    await channel.waitForConfirms();
    await model.close();
  }

  async function ready(queue: string): Promise<number> {
    const model = await connect(rabbit.url);
    const channel = await model.createChannel();
    const { messageCount } = await channel.checkQueue(queue);
    await model.close();
    return messageCount;
  }
});
