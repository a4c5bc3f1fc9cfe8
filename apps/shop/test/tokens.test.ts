/** Orders by submit token: one form, one order. */
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import {
  type Answer,
  call,
  freshDatabase,
  makeSku,
  startShop,
  type TestShop,
} from './support/shop.ts';

describe.skipIf(inject('postgresUrl') === '')('orders by submit token', () => {
  let shop: TestShop;
  let base: string;
  let rival: TestShop;

  beforeAll(async () => {
    const database = await freshDatabase(inject('postgresUrl'));
    shop = await startShop(database);
    rival = await startShop(database);
    base = shop.base;
  });
  afterAll(async () => {
    await rival?.stop();
    await shop?.stop();
  });

  async function fetchToken(userId = 'u1'): Promise<string> {
    const body = { operation: 'order.create', userId };
    const answer = await call(`${base}/api/tokens`, 'POST', body);
    expect(answer.status).toBe(201);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(Object.keys(answer.body).sort()).toEqual(['expiresAt', 'token']);
    const leftMs = Date.parse(answer.body.expiresAt) - Date.now();
    expect(Math.abs(leftMs - 30 * 60_000)).toBeLessThan(10_000);
    return answer.body.token;
  }
  const submit = (
    token: string,
    body: unknown,
    headers: Record<string, string> = {},
    at = base,
  ): Promise<Answer> =>
    call(`${at}/api/orders`, 'POST', body, { 'submit-token': token, ...headers });
  const orders = async (skuId: string): Promise<number> =>
    (await shop.pool.query('SELECT 1 FROM shop_order WHERE sku_id = $1', [skuId])).rowCount ?? -1;
  const violations = async (): Promise<unknown> =>
    (await call(`${base}/api/audit`)).body.violations;

  it('the first submit makes the order, a second one is told which and when', async () => {
    const skuId = await makeSku(base, 10);
    const token = await fetchToken();
    const body = { userId: 'u1', skuId, quantity: 2 };
    const first = await submit(token, body);
    expect(first.status).toBe(201);
    expect(first.body).toMatchObject({ skuId, quantity: 2, status: 'PENDING_PAY' });
    expect(first.headers.get('location')).toBe(`/api/orders/${first.body.orderNo}`);
    // Also when the form says something else by now.
    for (const again of [
      await submit(token, body),
      await submit(token, { ...body, quantity: 3 }),
    ]) {
      expect(again.status).toBe(409);
      expect(again.headers.get('content-type')).toContain('application/problem+json');
      expect(again.body).toMatchObject({
        code: 'REPEATED_SUBMIT',
        status: 409,
        orderNo: first.body.orderNo,
      });
      const at = Date.parse(again.body.firstProcessedAt);
      expect(Math.abs(at - Date.now())).toBeLessThan(10_000);
    }
    expect(await orders(skuId)).toBe(1);
    expect(await violations()).toEqual([]);
  });

  it('of 50 submits of one token at once on two nodes one makes the order, 49 are told its number', async () => {
    const skuId = await makeSku(base, 10);
    const token = await fetchToken();
    const body = { userId: 'u1', skuId, quantity: 1 };
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => submit(token, body, {}, i % 2 ? base : rival.base)),
    );
    const made = answers.filter(({ status }) => status === 201);
    expect(made).toHaveLength(1);
    const repeats = answers.filter(({ status }) => status === 409);
    expect(repeats).toHaveLength(49);
    for (const { body: problem } of repeats) {
      expect(problem).toMatchObject({
        code: 'REPEATED_SUBMIT',
        orderNo: made[0]?.body.orderNo,
      });
      expect(Date.parse(problem.firstProcessedAt)).not.toBeNaN();
    }
    expect(await orders(skuId)).toBe(1);
    expect(await violations()).toEqual([]);
  });

  it('a first submit that fails leaves the token usable', async () => {
    const skuId = await makeSku(base, 10);
    const token = await fetchToken();
    const failed = await submit(token, { userId: 'u1', skuId: 'none', quantity: 1 });
    expect([failed.status, failed.body.code]).toEqual([404, 'SKU_NOT_FOUND']);
    const invalid = await submit(token, { userId: 'u1', skuId, quantity: 0 });
    expect([invalid.status, invalid.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect((await submit(token, { userId: 'u1', skuId, quantity: 1 })).status).toBe(201);
    expect(await orders(skuId)).toBe(1);
  });

  it('an unknown, malformed, expired or other user’s token is refused and leaves no trace', async () => {
    const skuId = await makeSku(base, 10);
    const token = await fetchToken();
    const expired = await fetchToken();
    // Time passes for all tokens there are; the one that shall be good is made after it.
    await shop.pool.query('UPDATE turngate_submit_token SET expires_ms = expires_ms - 1800000');
    const good = await fetchToken();
    const trace = 'SELECT count(*) AS n FROM turngate_record';
    const before = (await shop.pool.query(trace)).rows[0].n;
    const body = { userId: 'u1', skuId, quantity: 1 };
    const answers = [
      await submit('A'.repeat(22), body),
      await submit('', body),
      await submit(`${good}, ${good}`, body),
      await submit(token, body),
      await submit(expired, body),
      await submit(good, { ...body, userId: 'u2' }),
    ];
    for (const { status, body: problem } of answers) {
      expect([status, problem.code]).toEqual([400, 'SUBMIT_TOKEN_INVALID']);
    }
    expect(await orders(skuId)).toBe(0);
    expect((await shop.pool.query(trace)).rows[0].n).toBe(before);
    expect((await submit(good, body)).status).toBe(201); // Another user's try does not spend it.
  });

  it('exactly one of the two headers is taken', async () => {
    const skuId = await makeSku(base, 10);
    const token = await fetchToken();
    const body = { userId: 'u1', skuId, quantity: 1 };
    const both = await submit(token, body, { 'idempotency-key': 'both' });
    expect([both.status, both.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    const none = await call(`${base}/api/orders`, 'POST', body);
    expect([none.status, none.body.code]).toEqual([400, 'IDEMPOTENCY_KEY_MISSING']);
    expect(await orders(skuId)).toBe(0);
    expect((await submit(token, body)).status).toBe(201);
  });

  it('a token is issued for what there is and to whom there may be, and for nothing else', async () => {
    for (const body of [
      { operation: 'order.pay', userId: 'u1' },
      { operation: 'order.create' },
      { operation: 'order.create', userId: '' },
      { operation: 'order.create', userId: 'u1', ttlMs: 1 },
    ]) {
      const answer = await call(`${base}/api/tokens`, 'POST', body);
      expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    }
  });

  it('an order that its token’s record tells of and that is gone is found by the audit', async () => {
    const skuId = await makeSku(base, 10);
    const made = await submit(await fetchToken(), { userId: 'u1', skuId, quantity: 1 });
    await shop.pool.query('DELETE FROM shop_order WHERE order_no = $1', [made.body.orderNo]);
    const rules = ((await violations()) as { rule: string }[]).map(({ rule }) => rule);
    expect(rules).toEqual(['CREATED_ORDER_LOST']);
  });
});
