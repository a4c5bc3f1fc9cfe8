/** The HTTP surface, call by call, and everything it refuses. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { holdTable } from './support/hold-table.ts';
import {
  call,
  freshDatabase,
  makeOrder,
  makeSku,
  onEachDatabase,
  startShop,
  type TestShop,
} from './support/shop.ts';

onEachDatabase('the HTTP surface', (serverUrl) => {
  let shop: TestShop;
  let base: string;

  beforeAll(async () => {
    shop = await startShop(await freshDatabase(serverUrl));
    base = shop.base;
  });
  afterAll(() => shop.stop());

  it('creates an article once: 201, the same body again 200, another body 409', async () => {
    const sku = { skuId: 'tea', name: '茶', priceMinor: 1250, stock: 10 };
    const first = await call(`${base}/api/skus`, 'POST', sku);
    const again = await call(`${base}/api/skus`, 'POST', sku);
    const other = await call(`${base}/api/skus`, 'POST', { ...sku, priceMinor: 1 });
    expect([first.status, again.status, other.status]).toEqual([201, 200, 409]);
    expect(again.body).toEqual(sku);
    expect(other.body.code).toBe('SKU_CONFLICT');
    expect((await call(`${base}/api/skus/tea`)).body).toEqual(sku);
    expect((await call(`${base}/api/skus/none`)).body.code).toBe('SKU_NOT_FOUND');
  });

  it('creates one order for a key used by 50 clients at once, in both header spellings', async () => {
    const skuId = await makeSku(base, 10);
    const body = { userId: 'u1', skuId, quantity: 2 };
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        call(`${base}/api/orders`, 'POST', body, { 'idempotency-key': i % 2 ? 'k50' : '"k50"' }),
      ),
    );
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([201]));
    expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(1);
    expect(new Set(answers.map((answer) => answer.headers.get('location'))).size).toBe(1);
    expect(answers.filter((answer) => !answer.headers.has('idempotent-replayed'))).toHaveLength(1);
    const text = 'SELECT count(*) AS n FROM shop_order WHERE sku_id = $1';
    expect(Number((await shop.query(text, [skuId])).rows[0]?.['n'])).toBe(1);
    const [first] = answers;
    expect(first?.body).toMatchObject({
      amountMinor: 2500,
      status: 'PENDING_PAY',
      currency: 'CNY',
    });
    expect((await call(`${base}${first?.headers.get('location')}`)).body).toEqual(first?.body);
  });

  it('answers 422 to the same key with another body, also while the first still runs', async () => {
    const skuId = await makeSku(base, 10);
    const headers = { 'idempotency-key': 'mixed' };
    // The first is held up by a lock on the row it has to read.
    const blocker = await holdTable(shop.databaseUrl, 'shop_sku');
    const first = call(`${base}/api/orders`, 'POST', { userId: 'u1', skuId, quantity: 1 }, headers);
    await expect.poll(() => blocker.isWaitedFor()).toBe(true);
    const other = await call(
      `${base}/api/orders`,
      'POST',
      { userId: 'u1', skuId, quantity: 2 },
      headers,
    );
    expect([other.status, other.body.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    await blocker.release();
    expect((await first).status).toBe(201);
    const late = await call(
      `${base}/api/orders`,
      'POST',
      { userId: 'u1', skuId, quantity: 2 },
      headers,
    );
    expect(late.status).toBe(422);
  });

  it('answers BUSY with Retry-After when the lock of an order stays taken', async () => {
    const orderNo = await makeOrder(base, await makeSku(base, 1));
    const blocker = await holdTable(shop.databaseUrl, 'shop_order');
    const pay = call(`${base}/api/orders/${orderNo}/pay`, 'POST');
    await expect.poll(() => blocker.isWaitedFor()).toBe(true);
    const cancel = await call(`${base}/api/orders/${orderNo}/cancel`, 'POST');
    expect([cancel.status, cancel.body.code]).toEqual([503, 'BUSY']);
    expect(cancel.headers.get('retry-after')).toBe('1');
    await blocker.release();
    expect((await pay).status).toBe(200);
  });

  it('keeps the keys of two users apart', async () => {
    const skuId = await makeSku(base, 10);
    const headers = { 'idempotency-key': 'shared' };
    const one = await call(
      `${base}/api/orders`,
      'POST',
      { userId: 'a', skuId, quantity: 1 },
      headers,
    );
    const two = await call(
      `${base}/api/orders`,
      'POST',
      { userId: 'b', skuId, quantity: 1 },
      headers,
    );
    expect([one.status, two.status]).toEqual([201, 201]);
    expect(two.headers.has('idempotent-replayed')).toBe(false);
    expect(one.body.orderNo).not.toBe(two.body.orderNo);
  });

  it('pays once, refuses to cancel what is paid and to pay what is cancelled', async () => {
    const skuId = await makeSku(base, 10);
    const paid = await makeOrder(base, skuId, 3);
    const first = await call(`${base}/api/orders/${paid}/pay`, 'POST');
    const again = await call(`${base}/api/orders/${paid}/pay`, 'POST', {});
    expect(first.body).toMatchObject({ orderNo: paid, status: 'PAID', amountMinor: 3750 });
    expect(again.body).toEqual(first.body);
    expect(first.headers.has('idempotent-replayed')).toBe(false);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(Date.parse(again.headers.get('idempotency-first-processed-at') ?? '')).not.toBeNaN();
    expect((await call(`${base}/api/orders/${paid}/cancel`, 'POST')).body.code).toBe(
      'ORDER_STATE_CONFLICT',
    );
    const cancelled = await makeOrder(base, skuId);
    const cancel = await call(`${base}/api/orders/${cancelled}/cancel`, 'POST');
    expect(cancel.body).toEqual({ orderNo: cancelled, status: 'CANCELLED' });
    expect((await call(`${base}/api/orders/${cancelled}/cancel`, 'POST')).status).toBe(200);
    expect((await call(`${base}/api/orders/${cancelled}/pay`, 'POST')).body.code).toBe(
      'ORDER_STATE_CONFLICT',
    );
    expect((await call(`${base}/api/skus/${skuId}`)).body.stock).toBe(7);
  });

  it('lets a refused order be paid after a restock, and restocks once per number', async () => {
    const skuId = await makeSku(base, 1);
    const orderNo = await makeOrder(base, skuId, 2);
    const refused = await call(`${base}/api/orders/${orderNo}/pay`, 'POST');
    expect([refused.status, refused.body.code]).toEqual([409, 'OUT_OF_STOCK']);
    expect((await call(`${base}/api/orders/${orderNo}`)).body.status).toBe('PENDING_PAY');
    for (let i = 0; i < 2; i++) {
      const restock = { restockNo: 'r1', units: 1 };
      expect((await call(`${base}/api/skus/${skuId}/restocks`, 'POST', restock)).status).toBe(201);
    }
    expect((await call(`${base}/api/orders/${orderNo}/pay`, 'POST')).status).toBe(200);
    expect((await call(`${base}/api/skus/${skuId}`)).body.stock).toBe(0);
    expect((await call(`${base}/api/audit`)).body.violations).toEqual([]);
  });

  const order = { userId: 'u1', skuId: 'tea', quantity: 1 };
  const bad: readonly [string, string, unknown, Record<string, string>, number, string][] = [
    ['no key', '/api/orders', order, {}, 400, 'IDEMPOTENCY_KEY_MISSING'],
    ['empty key', '/api/orders', order, { 'idempotency-key': '' }, 400, 'IDEMPOTENCY_KEY_INVALID'],
    [
      'empty quoted key',
      '/api/orders',
      order,
      { 'idempotency-key': '""' },
      400,
      'IDEMPOTENCY_KEY_INVALID',
    ],
    [
      'repeated key',
      '/api/orders',
      order,
      { 'idempotency-key': 'a, a' },
      400,
      'IDEMPOTENCY_KEY_INVALID',
    ],
    [
      'long key',
      '/api/orders',
      order,
      { 'idempotency-key': 'k'.repeat(256) },
      400,
      'IDEMPOTENCY_KEY_INVALID',
    ],
    [
      'non-ASCII key',
      '/api/orders',
      order,
      { 'idempotency-key': 'k\u00e9' },
      400,
      'IDEMPOTENCY_KEY_INVALID',
    ],
    [
      'quantity as text',
      '/api/orders',
      { ...order, quantity: '1' },
      { 'idempotency-key': 'b1' },
      400,
      'VALIDATION_FAILED',
    ],
    [
      'quantity 0',
      '/api/orders',
      { ...order, quantity: 0 },
      { 'idempotency-key': 'b1' },
      400,
      'VALIDATION_FAILED',
    ],
    [
      'quantity 1.5',
      '/api/orders',
      { ...order, quantity: 1.5 },
      { 'idempotency-key': 'b1' },
      400,
      'VALIDATION_FAILED',
    ],
    [
      'huge quantity',
      '/api/orders',
      '{"userId":"u","skuId":"tea","quantity":90071992547409931}',
      { 'idempotency-key': 'b1' },
      400,
      'VALIDATION_FAILED',
    ],
    [
      'unknown member',
      '/api/orders',
      { ...order, price: 1 },
      { 'idempotency-key': 'b1' },
      400,
      'VALIDATION_FAILED',
    ],
    [
      '__proto__',
      '/api/orders',
      '{"userId":"u","skuId":"tea","quantity":1,"__proto__":{"x":1}}',
      { 'idempotency-key': 'b1' },
      400,
      'VALIDATION_FAILED',
    ],
    [
      'member twice',
      '/api/orders',
      '{"userId":"u","skuId":"tea","quantity":1,"quantity":2}',
      { 'idempotency-key': 'b1' },
      400,
      'VALIDATION_FAILED',
    ],
    ['no JSON', '/api/orders', '{', { 'idempotency-key': 'b1' }, 400, 'VALIDATION_FAILED'],
    ['an array', '/api/orders', [], { 'idempotency-key': 'b1' }, 400, 'VALIDATION_FAILED'],
    [
      'other media type',
      '/api/orders',
      'x',
      { 'idempotency-key': 'b1', 'content-type': 'text/plain' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'large body',
      '/api/orders',
      ' '.repeat(70_000),
      { 'idempotency-key': 'b1' },
      413,
      'PAYLOAD_TOO_LARGE',
    ],
    [
      'unknown article',
      '/api/orders',
      { ...order, skuId: 'none' },
      { 'idempotency-key': 'b1' },
      404,
      'SKU_NOT_FOUND',
    ],
    [
      'NUL in a name',
      '/api/skus',
      { skuId: 'x', name: 'a\u0000', priceMinor: 1, stock: 1 },
      {},
      400,
      'VALIDATION_FAILED',
    ],
    [
      'negative price',
      '/api/skus',
      { skuId: 'x', name: 'a', priceMinor: -1, stock: 1 },
      {},
      400,
      'VALIDATION_FAILED',
    ],
    ['unknown order', '/api/orders/none/pay', undefined, {}, 404, 'ORDER_NOT_FOUND'],
    ['bad order number', '/api/orders/%00/pay', undefined, {}, 400, 'VALIDATION_FAILED'],
    ['bad escape', '/api/orders/%zz/pay', undefined, {}, 400, 'VALIDATION_FAILED'],
    ['unknown call', '/api/nothing', undefined, {}, 404, 'ROUTE_NOT_FOUND'],
  ];

  it.each(bad)(
    'refuses %s and changes nothing',
    async (_what, path, body, headers, status, code) => {
      const count = async (): Promise<string> => {
        const text = `SELECT concat((SELECT count(*) FROM turngate_record), '/',
          (SELECT count(*) FROM shop_order), '/', (SELECT count(*) FROM shop_sku)) AS n`;
        return String((await shop.query(text, [])).rows[0]?.['n']);
      };
      const before = await count();
      const answer = await call(`${base}${path}`, 'POST', body, headers);
      expect([answer.status, answer.body.code]).toEqual([status, code]);
      expect(answer.headers.get('content-type')).toContain('application/problem+json');
      expect(await count()).toBe(before);
    },
  );

  it('states the idempotency of every writing call in its OpenAPI document', async () => {
    const { body } = await call(`${base}/openapi.json`);
    expect(body.openapi).toMatch(/^3\.1/);
    let writing = 0;
    for (const [path, methods] of Object.entries<Record<string, Record<string, unknown>>>(
      body.paths,
    )) {
      for (const [method, described] of Object.entries(methods)) {
        if (method === 'get') continue;
        writing++;
        const statement = described['x-idempotency'] as Record<string, unknown>;
        // A token is new each time; every other writing call can be repeated.
        const supported = path !== '/api/tokens';
        expect(statement, `${method} ${path}`).toMatchObject({ supported });
        for (const part of ['operation', 'key', 'repeat', 'inFlight'])
          expect(statement[part]).toBeTruthy();
        expect(described['description']).toContain(String(statement['key']));
      }
    }
    expect(writing).toBe(21);
  });

  it('serves its page, health and metrics', async () => {
    expect((await call(`${base}/docs/`)).body).toContain('swagger');
    expect((await call(`${base}/healthz`)).body).toEqual({ status: 'ok' });
    const metrics = (await call(`${base}/metrics`)).body as string;
    expect(metrics).toMatch(
      /turngate_idempotency_claims_total\{operation="order.pay",outcome="first"\} \d/,
    );
    expect(metrics).toMatch(
      /turngate_idempotency_interceptions_total\{operation="order.create",cause="key_reused"\} \d/,
    );
    expect(metrics).toContain('turngate_lock_wait_duration_seconds_count');
    expect(metrics).not.toContain('k50');
  });
});
