/** The archive: finished orders move as a whole, nothing is lost by it, and who writes brings them back. */
import { createGate } from 'turngate';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../dist/database/open.js';
import type { ShopDatabase } from '../dist/database/shop-database.js';
import { archiveBatch } from '../dist/trade/archive.js';
import { sendCallback, successOf } from './support/callback.ts';
import { until } from './support/channel.ts';
import {
  type Answer,
  call,
  flood,
  freshDatabase,
  makeOrder,
  makeSku,
  onEachDatabase,
  startShop,
  type TestShop,
} from './support/shop.ts';

const days = 90;
const tables = ['order', 'payment', 'payment_attempt', 'refund', 'return'];

onEachDatabase('the archive', (serverUrl) => {
  let shop: TestShop;
  let own: ShopDatabase;
  let base: string;
  let skuId: string;

  beforeAll(async () => {
    const databaseUrl = await freshDatabase(serverUrl);
    shop = await startShop(databaseUrl);
    own = openDatabase(databaseUrl, () => undefined);
    base = shop.base;
    skuId = await makeSku(base, 1_000);
  });
  afterAll(async () => {
    await own.end();
    await shop.stop();
  });

  const archive = (): Promise<number> =>
    archiveBatch(
      {
        gate: createGate({ records: own.records }),
        database: own.database,
        snapshot: own.snapshot,
      },
      days,
    );
  const post = (path: string, body?: unknown): Promise<Answer> =>
    call(`${base}${path}`, 'POST', body);
  const audit = async () => (await call(`${base}/api/audit`)).body;
  const count = async (text: string): Promise<number> =>
    Number((await shop.query(`SELECT count(*) AS n FROM ${text}`, [])).rows[0]?.['n']);
  const age = (orderNos: readonly string[]): Promise<unknown> =>
    shop.query(
      `UPDATE shop_order SET due_at_ms = due_at_ms - ${(days + 1) * 86_400_000}
       WHERE order_no IN (${orderNos.map((_, i) => `$${i + 1}`).join(', ')})`,
      orderNos,
    );
  const isArchived = async (orderNo: string): Promise<boolean> =>
    (await shop.query('SELECT 1 FROM shop_order_archive WHERE order_no = $1', [orderNo])).rows
      .length === 1;

  async function completed(): Promise<string> {
    const orderNo = await makeOrder(base, skuId);
    for (const step of ['pay', 'ship', 'complete']) await post(`/api/orders/${orderNo}/${step}`);
    return orderNo;
  }
  async function paying(): Promise<{ orderNo: string; paymentNo: string }> {
    const orderNo = await makeOrder(base, skuId);
    const { paymentNo } = (await post(`/api/orders/${orderNo}/payments`, {})).body;
    return { orderNo, paymentNo };
  }
  async function cancelled(): Promise<string> {
    const orderNo = await makeOrder(base, skuId);
    await post(`/api/orders/${orderNo}/cancel`);
    return orderNo;
  }
  async function archived(orderNos: readonly string[]): Promise<void> {
    await age(orderNos);
    while ((await archive()) > 0);
    for (const orderNo of orderNos) expect(await isArchived(orderNo)).toBe(true);
  }

  it('moves what is finished and old, all of it and nothing else, in bounded steps', async () => {
    const many = await flood(110, 8, cancelled);
    const done = await flood(5, 5, completed);
    for (const no of done) {
      await post(`/api/orders/${no}/refunds`, { refundNo: 'r', amountMinor: 50 });
    }
    const young = [await completed(), await cancelled()];
    const open = [await makeOrder(base, skuId), await makeOrder(base, skuId)];
    await post(`/api/orders/${open[1]}/pay`);
    // Its refund is still on the way: without a channel nobody carries it out.
    const waiting = await paying();
    await sendCallback(base, successOf(waiting));
    for (const step of ['ship', 'complete']) await post(`/api/orders/${waiting.orderNo}/${step}`);
    await post(`/api/orders/${waiting.orderNo}/refunds`, { refundNo: 'r', amountMinor: 50 });
    await age([...many, ...done, ...open, waiting.orderNo]);
    // Open orders must not be closed meanwhile.
    await shop.query(
      "UPDATE shop_order SET status = status, due_at_ms = 9e15 WHERE status = 'PENDING_PAY'",
      [],
    );

    const bodies = async (): Promise<unknown[]> =>
      flood(
        many.length + done.length,
        8,
        async (i) => (await call(`${base}/api/orders/${[...many, ...done][i]}`)).body,
      );
    const [before, bodiesBefore] = [await audit(), await bodies()];
    expect(before.violations).toEqual([]);
    expect(await archive()).toBe(100);
    expect(await audit()).toEqual(before); // A run that is cut off here leaves clean books.
    expect(await archive()).toBe(15);
    expect(await archive()).toBe(0);
    expect(await audit()).toEqual(before);
    expect(await bodies()).toEqual(bodiesBefore);
    for (const no of [...young, ...open, waiting.orderNo]) expect(await isArchived(no)).toBe(false);
    const counts = await Promise.all(tables.map((table) => count(`shop_${table}_archive`)));
    expect(counts).toEqual([115, 5, 0, 5, 0]);
  });

  it('takes back what somebody still writes to, and answers as if it had never been away', async () => {
    const attempt = await paying();
    await post(`/api/orders/${attempt.orderNo}/cancel`);
    const [a, b, c] = (await flood(3, 3, completed)) as [string, string, string];
    await archived([a, b, c, attempt.orderNo]);
    const refund = { refundNo: 'late', amountMinor: 100 };
    expect((await post(`/api/orders/${a}/refunds`, refund)).status).toBe(201);
    expect((await post(`/api/orders/${a}/refunds`, refund)).status).toBe(201);
    const returned = await post(`/api/orders/${b}/returns`, { returnNo: 'r1' });
    expect(returned.status).toBe(201);
    const read = () => call(`${base}/api/orders/${b}/returns/r1`);
    await until(async () => (await read()).body.status === 'DONE');
    const refused = await post(`/api/orders/${c}/cancel`);
    expect([refused.status, refused.body.orderStatus]).toEqual([409, 'COMPLETED']);
    expect((await post(`/api/orders/${c}/complete`)).body.status).toBe('COMPLETED');
    const again = await post(`/api/orders/${attempt.orderNo}/payments`, {});
    expect(again.body.paymentNo).toBe(attempt.paymentNo); // The first answer, as before.
    // The customer pays for what was cancelled long ago: the money goes back.
    expect((await sendCallback(base, successOf(attempt))).body).toBe('success');
    const late = `shop_refund WHERE reason = 'LATE_PAYMENT' AND order_no = '${attempt.orderNo}'`;
    expect(await count(late)).toBe(1);
    expect((await audit()).violations).toEqual([]);
    await archived([a, b]); // And goes again.
    expect((await read()).body.status).toBe('DONE');
    expect((await audit()).violations).toEqual([]);
  });

  it('stays whole while refunds, callbacks and two archiving nodes meet at the same orders', async () => {
    const done = await flood(40, 8, completed);
    const attempts = await flood(20, 8, paying);
    for (const { orderNo } of attempts) await post(`/api/orders/${orderNo}/cancel`);
    await age([...done, ...attempts.map(({ orderNo }) => orderNo)]);
    let writing = true;
    const archivers = Promise.all(
      [0, 1].map(async () => {
        while (writing) await archive();
      }),
    );
    const statuses = await flood(140, 12, async (i) => {
      const attempt = attempts[i - 120];
      if (attempt !== undefined) return (await sendCallback(base, successOf(attempt))).status;
      const path = `/api/orders/${done[i % 40]}/refunds`;
      return (await post(path, { refundNo: `r${i}`, amountMinor: 100 })).status;
    });
    writing = false;
    await archivers;
    expect(new Set(statuses)).toEqual(new Set([200, 201]));
    expect((await audit()).violations).toEqual([]);
    while ((await archive()) > 0);
    for (const no of done) expect(await isArchived(no)).toBe(true);
    expect((await audit()).violations).toEqual([]);
  });

  it('has the same columns in every table and its archive', async () => {
    for (const table of tables) {
      const columns = async (name: string): Promise<unknown> =>
        (
          await shop.query(
            `SELECT column_name AS c FROM information_schema.columns
             WHERE table_name = $1 ORDER BY ordinal_position`,
            [name],
          )
        ).rows.map(({ c }) => c);
      expect(await columns(`shop_${table}_archive`)).toEqual(await columns(`shop_${table}`));
    }
  });

  it('is archived by one of three nodes, once per local day', async () => {
    const orderNo = await completed();
    await age([orderNo]);
    // As if the job had been known for long: tonight's run is due already.
    await shop.query("INSERT INTO turngate_job (job, since_ms) VALUES ('shop.archive', 0)", []);
    const archive = { afterDays: days, at: '00:00', timeZone: 'Asia/Shanghai' };
    const nodes = await Promise.all([1, 2, 3].map(() => startShop(shop.databaseUrl, { archive })));
    await until(async () => isArchived(orderNo));
    const runs = "turngate_job_run WHERE job = 'shop.archive' AND state = 'done' AND attempts = 1";
    await until(async () => (await count(runs)) === 1);
    for (const node of nodes) await node.stop();
    expect(await count("turngate_job_run WHERE job = 'shop.archive'")).toBe(1);
    expect((await audit()).violations).toEqual([]);
  });
});
