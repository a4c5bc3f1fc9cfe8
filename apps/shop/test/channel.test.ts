/** The shop and the channel, each a process of its own: callbacks, closing, refunds, the bill. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ChannelClient } from '../dist/channel/client.js';
import {
  call,
  channelSecret,
  freshDatabase,
  makeOrder,
  makeSku,
  onEachDatabase,
  startShop,
  type TestShop,
} from './support/shop.ts';

const channelMain = fileURLToPath(new URL('../dist/channel/main.js', import.meta.url));

onEachDatabase('the shop and its channel', (serverUrl) => {
  let shop: TestShop;
  let base: string;
  let child: ChildProcess;
  let channelUrl: string;
  let client: ChannelClient;
  const dataDir = mkdtempSync(join(tmpdir(), 'turngate-channel-'));

  async function startChannel(port = 0): Promise<void> {
    child = fork(channelMain, {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: {
        ...process.env,
        CHANNEL_DATA_DIR: dataDir,
        CHANNEL_SECRET: channelSecret,
        CHANNEL_NOTIFY_URL: `${base}/api/callbacks/payment`,
        CHANNEL_PORT: String(port),
      },
    });
    const [message] = await once(child, 'message');
    channelUrl = (message as { url: string }).url;
  }

  beforeAll(async () => {
    const url = await freshDatabase(serverUrl);
    shop = await startShop(url);
    base = shop.base;
    await startChannel();
    shop.channel.url = channelUrl;
    client = new ChannelClient({ secret: channelSecret, url: channelUrl });
  });
  afterAll(async () => {
    child.kill('SIGKILL');
    await shop.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const behave = (behaviour: object): Promise<unknown> =>
    fetch(`${channelUrl}/behaviour`, { method: 'PUT', body: JSON.stringify(behaviour) });
  const statusOf = async (orderNo: string): Promise<string> =>
    (await call(`${base}/api/orders/${orderNo}`)).body.status;
  const violations = async (): Promise<unknown> =>
    (await call(`${base}/api/audit`)).body.violations;

  async function payingOrder(): Promise<{ orderNo: string; payUrl: string; paymentNo: string }> {
    const orderNo = await makeOrder(base, await makeSku(base, 5));
    const { body } = await call(`${base}/api/orders/${orderNo}/payments`, 'POST', {});
    return { orderNo, payUrl: body.payUrl, paymentNo: body.paymentNo };
  }

  const makeDue = (orderNo: string): Promise<unknown> =>
    shop.query('UPDATE shop_order SET due_at_ms = 0 WHERE order_no = $1', [orderNo]);

  async function until(holds: () => Promise<boolean>): Promise<void> {
    for (const endMs = Date.now() + 30_000; ; ) {
      if (await holds()) return;
      if (Date.now() > endMs) throw new Error(`gave up waiting until ${holds}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  it('pays through late, doubled, reordered and forged callbacks exactly once', async () => {
    await behave({ duplicateShare: 0.5, forgedShare: 0.5, delayMsMax: 300 });
    const orders = await Promise.all(Array.from({ length: 20 }, payingOrder));
    await Promise.all(
      orders.flatMap(({ payUrl }) => [
        fetch(payUrl, { method: 'POST' }),
        fetch(payUrl, { method: 'POST' }),
      ]),
    );
    for (const { orderNo } of orders) await until(async () => (await statusOf(orderNo)) === 'PAID');
    await until(async () => (await call(`${channelUrl}/healthz`)).body.callbacksPending === 0);
    expect(await violations()).toEqual([]);
    await behave({ duplicateShare: 0, forgedShare: 0, delayMsMax: 0 });
  });

  it('does not let a customer pay less: a changed link is refused', async () => {
    const { payUrl } = await payingOrder();
    const cheaper = payUrl.replace(/amountMinor=\d+/, 'amountMinor=1');
    expect((await fetch(cheaper, { method: 'POST' })).status).toBe(400);
  });

  it('closes a due order, and a payment that comes after is refused by the channel', async () => {
    const { orderNo, payUrl } = await payingOrder();
    await makeDue(orderNo);
    await until(async () => (await statusOf(orderNo)) === 'CLOSED');
    expect((await fetch(payUrl, { method: 'POST' })).status).toBe(409);
  });

  it('pays a due order whose callback was lost: the channel is asked before closing', async () => {
    await behave({ tries: 1, delayMsMax: 60_000 });
    const { orderNo, payUrl } = await payingOrder();
    await fetch(payUrl, { method: 'POST' });
    await makeDue(orderNo);
    await until(async () => (await statusOf(orderNo)) === 'PAID');
    await behave({ tries: 20, delayMsMax: 0 });
  });

  it('never ends paid and closed without a refund when callbacks and closing race', async () => {
    await behave({ delayMsMax: 1_500 });
    const orders = await Promise.all(Array.from({ length: 40 }, payingOrder));
    await Promise.all(
      orders.map(async ({ orderNo, payUrl }, i) => {
        await Promise.all([
          makeDue(orderNo),
          i % 2 ? fetch(payUrl, { method: 'POST' }) : undefined,
        ]);
      }),
    );
    for (const { orderNo } of orders) {
      await until(async () => ['PAID', 'CLOSED'].includes(await statusOf(orderNo)));
    }
    expect(await violations()).toEqual([]);
    await behave({ delayMsMax: 0 });
  });

  it('carries a refund out once, also when the channel is killed in between', async () => {
    const { orderNo, payUrl, paymentNo } = await payingOrder();
    await fetch(payUrl, { method: 'POST' });
    await until(async () => (await statusOf(orderNo)) === 'PAID');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const refund = { refundNo: 'r1', amountMinor: 400 };
    const answer = await call(`${base}/api/orders/${orderNo}/refunds`, 'POST', refund);
    expect([answer.status, answer.body.status]).toEqual([201, 'PENDING']);
    await startChannel(Number(new URL(channelUrl).port));
    const settled = async (): Promise<boolean> => {
      const text = "SELECT 1 FROM shop_refund WHERE order_no = $1 AND status = 'SUCCEEDED'";
      return (await shop.query(text, [orderNo])).rows.length === 1;
    };
    await until(settled);
    const bill = await client.bill(new Date().toISOString().slice(0, 10));
    expect(bill.split('\n').filter((line) => line.startsWith(`REFUND,${orderNo}/r1,`))).toEqual([
      expect.stringContaining(`,${paymentNo},-4.00,CNY,`),
    ]);
    expect(await violations()).toEqual([]);
  });

  it('reconciles the day: clean books match the bill, an injected difference is found', async () => {
    const date = new Date().toISOString().slice(0, 10);
    const reconciled = (channel: string) =>
      call(`${base}/api/reconciliations`, 'POST', { date, channel });
    expect((await call(`${base}/api/reconciliations/${date}`)).status).toBe(404);
    const clean = await reconciled('simulator');
    expect(clean.body.breaks).toEqual([]);
    expect(clean.body.counts['MATCHED']).toBeGreaterThan(20);
    expect((await call(`${base}/api/reconciliations/${date}`)).body).toEqual(clean.body);
    expect((await reconciled('simulator')).body).toEqual(clean.body);
    const { rows } = await shop.query(
      "SELECT min(payment_no) AS no FROM shop_payment_attempt WHERE status = 'SUCCESS'",
      [],
    );
    const paymentNo = String(rows[0]?.['no']);
    await shop.query(
      'UPDATE shop_payment_attempt SET amount_minor = amount_minor + 1 WHERE payment_no = $1',
      [paymentNo],
    );
    const spoilt = await reconciled('second-look');
    expect(spoilt.body.breaks).toMatchObject([
      { code: 'AMOUNT_MISMATCH', key: paymentNo, amountMinor: -1 },
    ]);
    expect((await call(`${base}/api/reconciliations/2026-02-31x`)).status).toBe(400);
  });
});
