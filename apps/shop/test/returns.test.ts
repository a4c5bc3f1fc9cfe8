/** Returns as a saga: refund, stock, coupon, word; refused at the pivot; killed in the middle. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sign } from '../dist/channel/signature.js';
import { forkChannel, type TestChannel, until } from './support/channel.ts';
import {
  type Answer,
  call,
  channelSecret,
  flood,
  freePort,
  freshDatabase,
  makeOrder,
  makeSku,
  onEachDatabase,
  type ShopProcess,
  spawnShop,
  startShop,
  type TestShop,
} from './support/shop.ts';

onEachDatabase('returns', (serverUrl) => {
  let shop: TestShop;
  let base: string;
  let channel: TestChannel;
  let serial = 0;
  const dataDir = mkdtempSync(join(tmpdir(), 'turngate-returns-'));
  const running = new Set<ShopProcess>();

  beforeAll(async () => {
    shop = await startShop(await freshDatabase(serverUrl));
    base = shop.base;
    channel = await forkChannel(base, dataDir);
    shop.channel.url = channel.url;
  });
  afterAll(async () => {
    for (const { killGroup } of running) await killGroup();
    await channel.kill();
    await shop.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const post = (path: string, body?: unknown): Promise<Answer> =>
    call(`${base}${path}`, 'POST', body);
  const violations = async (): Promise<unknown> =>
    (await call(`${base}/api/audit`)).body.violations;
  const stockOf = async (skuId: string): Promise<number> =>
    (await call(`${base}/api/skus/${skuId}`)).body.stock;
  const returned = async (orderNo: string, status: string, at = base): Promise<boolean> =>
    (await call(`${at}/api/orders/${orderNo}/returns/r1`)).body.status === status;

  async function channelOrder(skuId: string): Promise<string> {
    const orderNo = await makeOrder(base, skuId);
    const { body } = await post(`/api/orders/${orderNo}/payments`, {});
    await fetch(body.payUrl, { method: 'POST' });
    await until(async () => (await call(`${base}/api/orders/${orderNo}`)).body.status === 'PAID');
    return orderNo;
  }

  async function billedRefunds(orderNo: string): Promise<number> {
    const path = `/api/bills/${new Date().toISOString().slice(0, 10)}`;
    const nowS = Math.floor(Date.now() / 1000);
    const headers = { 'channel-signature': sign(channelSecret, Buffer.from(path), nowS) };
    const bill = await (await fetch(`${channel.url}${path}`, { headers })).text();
    return bill.split('\n').filter((line) => line.startsWith(`REFUND,${orderNo}/`)).length;
  }

  it('gives money, units and coupon back once, and answers repeats with the first answer', async () => {
    const skuId = await makeSku(base, 5);
    const orderNo = await makeOrder(base, skuId, 2);
    const couponId = `coupon-${++serial}`;
    await post('/api/coupons', { couponId, total: 1, perUser: 1 });
    const redeem = { userId: 'u1', redeemNo: orderNo };
    expect((await post(`/api/coupons/${couponId}/redeem`, redeem)).status).toBe(200);
    const early = await post(`/api/orders/${orderNo}/returns`, { returnNo: 'r1' });
    expect([early.status, early.body.code]).toEqual([409, 'RETURN_CONFLICT']);
    await post(`/api/orders/${orderNo}/pay`);
    await post(`/api/orders/${orderNo}/refunds`, { refundNo: 'part', amountMinor: 500 });
    expect(await stockOf(skuId)).toBe(3);
    const answers = await flood(10, 10, () =>
      post(`/api/orders/${orderNo}/returns`, { returnNo: 'r1' }),
    );
    for (const answer of answers) {
      expect(answer.status).toBe(201);
      expect(answer.body).toEqual({
        orderNo,
        returnNo: 'r1',
        status: 'REFUNDING',
        amountMinor: 2_000,
      });
    }
    await until(() => returned(orderNo, 'DONE'));
    expect(await stockOf(skuId)).toBe(5);
    const again = await post(`/api/coupons/${couponId}/redeem`, { userId: 'u2' });
    expect(again.status).toBe(200); // There was only one, and it was back.
    expect(await violations()).toEqual([]);
  });

  it('returns an order once, and does not ship what comes back', async () => {
    const orderNo = await makeOrder(base, await makeSku(base, 5));
    await post(`/api/orders/${orderNo}/pay`);
    const answers = await flood(10, 10, (i) =>
      post(`/api/orders/${orderNo}/returns`, { returnNo: `r${i}` }),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ body }) => body.code === 'RETURN_CONFLICT')).toHaveLength(9);
    expect((await post(`/api/orders/${orderNo}/ship`)).body.code).toBe('ORDER_STATE_CONFLICT');
    expect((await call(`${base}/api/orders/${orderNo}/returns/none`)).status).toBe(404);
    expect(await violations()).toEqual([]);
  });

  it('is refused when the channel refuses the money: nothing has changed', async () => {
    const skuId = await makeSku(base, 5);
    const orderNo = await makeOrder(base, skuId);
    const { body } = await post(`/api/orders/${orderNo}/payments`, {});
    // Told with the channel's secret, but the channel knows nothing of it.
    const event = JSON.stringify({
      eventId: `e-${orderNo}`,
      paymentNo: body.paymentNo,
      orderNo,
      tradeNo: 'T1',
      amountMinor: 1250,
      currency: 'CNY',
      status: 'SUCCESS',
      paidAt: '2026-11-29T10:00:00Z',
    });
    const signature = sign(channelSecret, Buffer.from(event), Math.floor(Date.now() / 1000));
    const headers = { 'channel-signature': signature };
    await call(`${base}/api/callbacks/payment`, 'POST', event, headers);
    await post(`/api/orders/${orderNo}/returns`, { returnNo: 'r1' });
    await until(() => returned(orderNo, 'REFUSED'));
    expect(await stockOf(skuId)).toBe(4);
    expect((await post(`/api/orders/${orderNo}/ship`)).status).toBe(200);
    expect(await violations()).toEqual([]);
  });

  it('waits for a channel that is down, then refunds once', async () => {
    const skuId = await makeSku(base, 5);
    const orderNo = await channelOrder(skuId);
    await channel.kill();
    await post(`/api/orders/${orderNo}/returns`, { returnNo: 'r1' });
    await until(async () => {
      const text =
        "SELECT failures FROM turngate_staged WHERE operation = 'order.return-saga' AND failures > 0";
      return (await shop.query(text, [])).rows.length > 0;
    });
    expect(await returned(orderNo, 'REFUNDING')).toBe(true);
    channel = await forkChannel(base, dataDir, Number(new URL(channel.url).port));
    await until(() => returned(orderNo, 'DONE'));
    expect(await billedRefunds(orderNo)).toBe(1);
    expect(await stockOf(skuId)).toBe(5);
    expect(await violations()).toEqual([]);
  });

  it('ends every return once though the shop is killed in the middle', async () => {
    const env = {
      DATABASE_URL: shop.databaseUrl,
      CHANNEL_URL: channel.url,
      CHANNEL_SECRET: channelSecret,
      PORT: String(await freePort()),
    };
    const skuId = await makeSku(base, 50);
    const orders = await flood(15, 5, () => channelOrder(skuId));
    const databaseUrl = shop.databaseUrl;
    await shop.stop(); // From here on only processes work on this database.
    let process = await spawnShop(env);
    running.add(process);
    for (let kills = 0; kills < 3; kills++) {
      const five = orders.slice(kills * 5, kills * 5 + 5);
      const asked = five.map((orderNo) =>
        call(`${process.base}/api/orders/${orderNo}/returns`, 'POST', { returnNo: 'r1' }),
      );
      const settled = Promise.allSettled(asked);
      // The first is accepted: its saga runs, the others are somewhere before or after.
      await Promise.any(asked);
      await process.killGroup();
      await settled;
      process = await spawnShop(env);
      running.add(process);
      await Promise.all(
        five.map((orderNo) =>
          call(`${process.base}/api/orders/${orderNo}/returns`, 'POST', { returnNo: 'r1' }),
        ),
      );
    }
    for (const orderNo of orders) await until(() => returned(orderNo, 'DONE', process.base));
    for (const orderNo of orders) expect(await billedRefunds(orderNo)).toBe(1);
    expect((await call(`${process.base}/api/skus/${skuId}`)).body.stock).toBe(50);
    expect((await call(`${process.base}/api/audit`)).body.violations).toEqual([]);
    await process.killGroup();
    shop = await startShop(databaseUrl);
  });
});
