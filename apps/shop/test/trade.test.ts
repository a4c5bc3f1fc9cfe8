/** Balances, coupons, flash sales, refunds, callbacks: each call's first, repeat and refusal. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sign } from '../dist/channel/signature.js';
import {
  type Answer,
  call,
  channelSecret,
  freshDatabase,
  makeOrder,
  makeSku,
  onEachDatabase,
  startShop,
  type TestShop,
} from './support/shop.ts';

onEachDatabase('the trade', (serverUrl) => {
  let shop: TestShop;
  let base: string;
  let serial = 0;

  beforeAll(async () => {
    shop = await startShop(await freshDatabase(serverUrl));
    base = shop.base;
  });
  afterAll(async () => {
    await shop.stop();
  });

  const post = (path: string, body?: unknown): Promise<Answer> =>
    call(`${base}${path}`, 'POST', body);
  const name = (what: string): string => `${what}-${++serial}`;
  const violations = async (): Promise<unknown> =>
    (await call(`${base}/api/audit`)).body.violations;

  async function payingOrder(units = 5): Promise<{ orderNo: string; paymentNo: string }> {
    const orderNo = await makeOrder(base, await makeSku(base, units));
    const { body } = await post(`/api/orders/${orderNo}/payments`, {});
    return { orderNo, paymentNo: body.paymentNo };
  }

  function event(parts: Record<string, unknown>): Record<string, unknown> {
    return {
      eventId: name('event'),
      tradeNo: name('trade'),
      amountMinor: 1250,
      currency: 'CNY',
      status: 'SUCCESS',
      paidAt: '2026-11-29T10:00:00Z',
      ...parts,
    };
  }

  function callback(
    body: unknown,
    { secret = channelSecret, ageS = 0, raw = JSON.stringify(body) } = {},
  ): Promise<Answer> {
    const signature = sign(secret, Buffer.from(raw), Math.floor(Date.now() / 1000) - ageS);
    return call(`${base}/api/callbacks/payment`, 'POST', raw, { 'channel-signature': signature });
  }

  it('ships and completes a paid order once, and nothing else', async () => {
    const orderNo = await makeOrder(base, await makeSku(base, 5));
    const early = await post(`/api/orders/${orderNo}/ship`);
    expect([early.status, early.body.code]).toEqual([409, 'ORDER_STATE_CONFLICT']);
    await post(`/api/orders/${orderNo}/pay`);
    for (const [verb, status] of [
      ['ship', 'SHIPPED'],
      ['complete', 'COMPLETED'],
    ]) {
      const first = await post(`/api/orders/${orderNo}/${verb}`);
      const again = await post(`/api/orders/${orderNo}/${verb}`);
      expect(first.body).toEqual({ orderNo, status });
      expect(again.body).toEqual(first.body);
      expect(again.headers.get('idempotent-replayed')).toBe('true');
    }
    expect((await post(`/api/orders/${orderNo}/cancel`)).body.code).toBe('ORDER_STATE_CONFLICT');
  });

  it('moves a balance once per number, and never below zero', async () => {
    const user = name('user');
    const deposit = { txnNo: 'd1', amountMinor: 1_000 };
    const made = await post(`/api/accounts/${user}/deposits`, deposit);
    expect([made.status, made.body.balanceMinor]).toEqual([201, 1_000]);
    const again = await post(`/api/accounts/${user}/deposits`, deposit);
    expect([again.status, again.body]).toEqual([201, made.body]);
    const other = await post(`/api/accounts/${user}/deposits`, { ...deposit, amountMinor: 1 });
    expect(other.status).toBe(422);
    const taken = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        post(`/api/accounts/${user}/withdrawals`, { txnNo: `w${i}`, amountMinor: 300 }),
      ),
    );
    const codes = taken.map(({ status, body }) => body.code ?? status);
    expect(codes.filter((code) => code === 201)).toHaveLength(3);
    expect(codes.filter((code) => code === 'INSUFFICIENT_BALANCE')).toHaveLength(17);
    expect((await call(`${base}/api/accounts/${user}`)).body.balanceMinor).toBe(100);
    expect((await call(`${base}/api/accounts/nobody`)).body.balanceMinor).toBe(0);
    expect(await violations()).toEqual([]);
  });

  it('redeems a coupon once per customer and never more than there are', async () => {
    const couponId = name('coupon');
    const coupon = { couponId, total: 10, perUser: 1 };
    expect((await post('/api/coupons', coupon)).status).toBe(201);
    expect((await post('/api/coupons', { ...coupon, total: 11 })).body.code).toBe(
      'COUPON_CONFLICT',
    );
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        post(`/api/coupons/${couponId}/redeem`, { userId: `u${i % 30}` }),
      ),
    );
    const codes = answers.map(({ status, body }) => body.code ?? status);
    expect(codes.filter((code) => code === 200)).toHaveLength(20); // Ten customers, twice each.
    expect(codes.filter((code) => code === 'COUPON_EXHAUSTED')).toHaveLength(40);
    expect((await post('/api/coupons/none/redeem', { userId: 'u' })).status).toBe(404);
    const several = { couponId: name('coupon'), total: 10, perUser: 2 };
    await post('/api/coupons', several);
    const uses = [];
    for (const redeemNo of ['a', 'a', 'b', 'c']) {
      const path = `/api/coupons/${several.couponId}/redeem`;
      uses.push((await post(path, { userId: 'u', redeemNo })).status);
    }
    expect(uses).toEqual([200, 200, 200, 409]);
    expect(await violations()).toEqual([]);
  });

  it('sells a flash sale out exactly, one per customer, repeats replayed', async () => {
    const skuId = await makeSku(base, 30);
    const activityId = name('activity');
    const activity = { activityId, skuId, units: 20, perUser: 1 };
    expect((await post('/api/activities', activity)).status).toBe(201);
    expect((await post('/api/activities', activity)).status).toBe(201);
    expect((await call(`${base}/api/skus/${skuId}`)).body.stock).toBe(10);
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        post(`/api/activities/${activityId}/purchase`, { userId: `u${i % 50}` }),
      ),
    );
    const orders = new Set(answers.flatMap(({ body }) => body.orderNo ?? []));
    expect(orders.size).toBe(20);
    expect(new Set(answers.map(({ status, body }) => body.code ?? status))).toEqual(
      new Set([201, 'SOLD_OUT']),
    );
    const [orderNo] = orders;
    expect((await post(`/api/orders/${orderNo}/pay`)).status).toBe(200);
    expect((await call(`${base}/api/skus/${skuId}`)).body.stock).toBe(10);
    const tooMany = { activityId: name('activity'), skuId, units: 11, perUser: 1 };
    expect((await post('/api/activities', tooMany)).body.code).toBe('OUT_OF_STOCK');
    expect(await violations()).toEqual([]);
  });

  it('never refunds more than was captured, in 60 refunds at once', async () => {
    const orderNo = await makeOrder(base, await makeSku(base, 5)); // 1250
    const unpaid = await post(`/api/orders/${orderNo}/refunds`, { refundNo: 'x', amountMinor: 1 });
    expect(unpaid.body.code).toBe('ORDER_STATE_CONFLICT');
    await post(`/api/orders/${orderNo}/pay`);
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        post(`/api/orders/${orderNo}/refunds`, { refundNo: `r${i % 30}`, amountMinor: 100 }),
      ),
    );
    const codes = answers.map(({ status, body }) => body.code ?? status);
    expect(codes.filter((code) => code === 201)).toHaveLength(24);
    expect(codes.filter((code) => code === 'REFUND_EXCEEDS_CAPTURED')).toHaveLength(36);
    const known = answers.find(({ status }) => status === 201)?.body.refundNo;
    const other = await post(`/api/orders/${orderNo}/refunds`, { refundNo: known, amountMinor: 1 });
    expect(other.status).toBe(422);
    expect(await violations()).toEqual([]);
  });

  it('pays by callback: exactly "success", first and repeat, whatever the event', async () => {
    const { orderNo, paymentNo } = await payingOrder();
    const again = await post(`/api/orders/${orderNo}/payments`, {});
    expect(again.body.paymentNo).toBe(paymentNo);
    const body = event({ orderNo, paymentNo });
    const answers = await Promise.all(Array.from({ length: 20 }, () => callback(body)));
    const other = await callback(event({ orderNo, paymentNo, tradeNo: body['tradeNo'] }));
    for (const answer of [...answers, other]) {
      expect([answer.status, answer.body]).toEqual([200, 'success']);
      expect(answer.headers.get('content-type')).toMatch(/^text\/plain/);
    }
    expect((await call(`${base}/api/orders/${orderNo}`)).body.status).toBe('PAID');
    expect((await post(`/api/orders/${orderNo}/pay`)).body.amountMinor).toBe(1250);
    const refund = await post(`/api/orders/${orderNo}/refunds`, { refundNo: 'r', amountMinor: 50 });
    expect([refund.status, refund.body.status]).toEqual([201, 'PENDING']);
    expect(await violations()).toEqual([]);
  });

  it('refuses a callback that is forged, old, malformed or about something else', async () => {
    const { orderNo, paymentNo } = await payingOrder();
    const body = event({ orderNo, paymentNo });
    for (const answer of [
      await callback(body, { secret: 'wrong' }),
      await callback(body, { ageS: 400 }),
      await call(`${base}/api/callbacks/payment`, 'POST', JSON.stringify(body)),
    ]) {
      expect([answer.status, answer.body.code]).toEqual([401, 'SIGNATURE_INVALID']);
    }
    const { currency: _, ...partial } = body;
    expect((await callback(partial)).status).toBe(400);
    expect((await callback(body, { raw: '{' })).status).toBe(400);
    for (const wrong of [
      { amountMinor: 1 },
      { currency: 'USD' },
      { paymentNo: 'P-unknown' },
      { orderNo: 'other' },
    ]) {
      const answer = await callback(event({ orderNo, paymentNo, ...wrong }));
      expect([answer.status, answer.body.code]).toEqual([422, 'CALLBACK_MISMATCH']);
    }
    const { rows } = await shop.query('SELECT count(*) AS n FROM shop_break', []);
    expect(Number(rows[0]?.['n'])).toBe(4);
    expect((await call(`${base}/api/orders/${orderNo}`)).body.status).toBe('PENDING_PAY');
  });

  it('sends money back that finds its order cancelled, paid, or without stock', async () => {
    const cancelled = await payingOrder();
    await post(`/api/orders/${cancelled.orderNo}/cancel`);
    const paid = await payingOrder();
    await post(`/api/orders/${paid.orderNo}/pay`);
    const short = await payingOrder(0);
    for (const attempt of [cancelled, paid, short]) {
      expect((await callback(event({ ...attempt }))).body).toBe('success');
    }
    const { rows } = await shop.query(
      "SELECT order_no, amount_minor FROM shop_refund WHERE reason = 'LATE_PAYMENT'",
      [],
    );
    expect(new Set(rows.map((row) => row['order_no']))).toEqual(
      new Set([cancelled.orderNo, paid.orderNo, short.orderNo]),
    );
    expect((await call(`${base}/api/orders/${short.orderNo}`)).body.status).toBe('CLOSED');
    expect(await violations()).toEqual([]);
  });

  it('keeps money that came, whatever a late failure says; a failed attempt makes room', async () => {
    const won = await payingOrder();
    await callback(event({ ...won }));
    expect((await callback(event({ ...won, status: 'FAILED' }))).body).toBe('success');
    expect((await call(`${base}/api/orders/${won.orderNo}`)).body.status).toBe('PAID');
    const lost = await payingOrder();
    await callback(event({ ...lost, status: 'FAILED' }));
    const next = await post(`/api/orders/${lost.orderNo}/payments`, {});
    expect(next.body.paymentNo).not.toBe(lost.paymentNo);
    await callback(event({ ...lost })); // The first attempt succeeds after all.
    expect((await call(`${base}/api/orders/${lost.orderNo}`)).body.status).toBe('PAID');
    await callback(event({ orderNo: lost.orderNo, paymentNo: next.body.paymentNo }));
    expect(await violations()).toEqual([]);
  });

  it('never ends both paid and cancelled when callback and cancel race', async () => {
    for (let i = 0; i < 25; i++) {
      const attempt = await payingOrder();
      await Promise.all([
        callback(event({ ...attempt })),
        post(`/api/orders/${attempt.orderNo}/cancel`),
      ]);
    }
    expect(await violations()).toEqual([]);
  });
});
