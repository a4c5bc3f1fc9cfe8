/** What must hold under load: paid once, sold exactly, nothing stuck. Over real HTTP. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  call,
  flood,
  freshDatabase,
  makeOrder,
  makeSku,
  onEachDatabase,
  startShop,
  type TestShop,
} from './support/shop.ts';

onEachDatabase('storms', (serverUrl) => {
  let shop: TestShop;
  let base: string;

  beforeAll(async () => {
    shop = await startShop(await freshDatabase(serverUrl));
    base = shop.base;
  });
  afterAll(() => shop.stop());

  it('answers 200 payments of one order with one payment and 199 replays of it', async () => {
    const skuId = await makeSku(base, 5);
    const orderNo = await makeOrder(base, skuId, 2);
    const answers = await flood(200, 200, () => call(`${base}/api/orders/${orderNo}/pay`, 'POST'));
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
    expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(1);
    expect(answers.filter((answer) => !answer.headers.has('idempotent-replayed'))).toHaveLength(1);
    expect((await call(`${base}/api/skus/${skuId}`)).body.stock).toBe(3);
    expect((await call(`${base}/api/audit`)).body.violations).toEqual([]);
  });

  it('sells exactly 500 units to 1,000 orders, and the refused ones can be paid after a restock', async () => {
    const skuId = await makeSku(base, 500);
    const orders = await flood(1_000, 64, () => makeOrder(base, skuId));
    const answers = await flood(1_000, 64, (i) =>
      call(`${base}/api/orders/${orders[i]}/pay`, 'POST'),
    );
    const paid = answers.filter((answer) => answer.status === 200);
    const refused = answers.filter((answer) => answer.body.code === 'OUT_OF_STOCK');
    expect([paid.length, refused.length]).toEqual([500, 500]);
    expect((await call(`${base}/api/skus/${skuId}`)).body.stock).toBe(0);
    const restock = { restockNo: 'again', units: 500 };
    expect((await call(`${base}/api/skus/${skuId}/restocks`, 'POST', restock)).status).toBe(201);
    const late = await flood(1_000, 64, (i) => call(`${base}/api/orders/${orders[i]}/pay`, 'POST'));
    expect(new Set(late.map((answer) => answer.status))).toEqual(new Set([200]));
    expect((await call(`${base}/api/audit`)).body.violations).toEqual([]);
  }, 90_000);

  it('lets pay and cancel of one order race: one of them wins, never both', async () => {
    const skuId = await makeSku(base, 100);
    for (let round = 0; round < 20; round++) {
      const orderNo = await makeOrder(base, skuId);
      const [pay, cancel] = await Promise.all([
        call(`${base}/api/orders/${orderNo}/pay`, 'POST'),
        call(`${base}/api/orders/${orderNo}/cancel`, 'POST'),
      ]);
      expect([pay.status, cancel.status].sort()).toEqual([200, 409]);
    }
    expect((await call(`${base}/api/audit`)).body.violations).toEqual([]);
  });

  it('finds every kind of broken invariant when the books are broken by hand', async () => {
    const skuId = await makeSku(base, 5);
    const made = await flood(3, 3, () => makeOrder(base, skuId));
    const [a, b, c] = made as [string, string, string];
    for (const orderNo of [a, b]) await call(`${base}/api/orders/${orderNo}/pay`, 'POST');
    // Points follow a payment by themselves, behind those of the storms before.
    const points = 'SELECT order_no FROM shop_points WHERE order_no IN ($1, $2)';
    const given = async (): Promise<number> => (await shop.query(points, [a, b])).rows.length;
    await expect.poll(given, { timeout: 90_000, interval: 200 }).toBe(2);
    await shop.query('DELETE FROM shop_payment WHERE order_no = $1', [a]);
    await shop.query("UPDATE shop_order SET status = 'CANCELLED' WHERE order_no = $1", [b]);
    await shop.query('UPDATE shop_payment SET amount_minor = 1 WHERE order_no = $1', [b]);
    await shop.query(
      'INSERT INTO shop_payment (order_no, amount_minor, paid_at_ms) VALUES ($1, 5, 9000000000000)',
      [c],
    );
    const { violations } = (await call(`${base}/api/audit`)).body;
    const rules = new Set(violations.map((violation: { rule: string }) => violation.rule));
    expect([...rules].sort()).toEqual([
      'AMOUNT_MISMATCH',
      'DONE_WITHOUT_EFFECT',
      'EFFECT_WITHOUT_RECORD',
      'HISTORY_BROKEN',
      'PAID_WITHOUT_PAYMENT',
      'PAYMENT_NOT_IN_LEDGER',
      'PAYMENT_WITHOUT_PAID_ORDER',
      'POINTS_MISMATCH',
      'STOCK_NOT_CONSERVED',
    ]);
  }, 120_000);
});
