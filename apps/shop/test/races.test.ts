/**
 * Races at the size the project promises: 500 callbacks against the closing of their orders, 200 refunds
 * of one payment at once.
 */
import { createGate } from 'turngate';
import { memoryLocks } from 'turngate/memory';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ChannelClient } from '../dist/channel/client.js';
import { openDatabase } from '../dist/database/open.js';
import { createChance } from '../dist/lab/chance.js';
import { callbackOperation } from '../dist/trade/callback.js';
import { type Closing, closeDueOrders } from '../dist/trade/closing.js';
import { sendCallback, successOf } from './support/callback.ts';
import { until } from './support/channel.ts';
import {
  call,
  channelSecret,
  flood,
  freshDatabase,
  makeOrder,
  makeSku,
  onEachDatabase,
  startShop,
  type TestShop,
} from './support/shop.ts';

const seed = Number(process.env['TURNGATE_SEED'] ?? 1);

type Attempt = { readonly orderNo: string; readonly paymentNo: string };

onEachDatabase('races', (serverUrl) => {
  let shop: TestShop;
  let base: string;
  let serial = 0;

  beforeAll(async () => {
    shop = await startShop(await freshDatabase(serverUrl));
    base = shop.base;
  });
  afterAll(() => shop.stop());

  const audit = async () => (await call(`${base}/api/audit`)).body;

  it('never ends paid and closed without a refund, in 500 callbacks against the closing', async () => {
    // Another node: it shares no lock with the shop, so only the guarded moves decide.
    const node = openDatabase(shop.databaseUrl, () => undefined);
    const gate = createGate({ records: node.records, locks: memoryLocks() });
    let onTransaction = (): void => undefined;
    const database: typeof node.database = {
      dialect: node.database.dialect,
      query: (text, values) => node.database.query(text, values),
      session: (tx) => node.database.session(tx),
      transaction(work) {
        onTransaction();
        return node.database.transaction(work);
      },
    };
    const store = { gate, database, snapshot: node.snapshot };
    const channel = new ChannelClient({ secret: channelSecret, url: undefined });
    const closing: Closing = { store, channel, callback: callbackOperation(store) };

    const skuId = await makeSku(base, 600);
    const chance = createChance(seed, 'races');
    const answers: Promise<string>[] = [];
    for (let round = 0; round < 10; round++) {
      const attempts = await dueAttempts(skuId, 50);
      // Closing an order takes two transactions. Its callback sets out with one of them, or the one
      // before. The shop's own worker closes too, once a second.
      let waiting = attempts.map((attempt, i) => ({ attempt, at: 2 * i + chance.between(-1, 1) }));
      let transactions = 0;
      onTransaction = () => {
        for (const { attempt, at } of waiting) {
          if (at > transactions) continue;
          answers.push(sendCallback(base, successOf(attempt)).then(({ body }) => body));
        }
        waiting = waiting.filter(({ at }) => at > transactions);
        transactions++;
      };
      await closeDueOrders(closing);
      while (waiting.length > 0) onTransaction(); // Of orders that the worker took away.
    }
    const open = "SELECT 1 FROM shop_order WHERE status IN ('PENDING_PAY', 'CLOSING')";
    await until(async () => (await shop.query(open, [])).rows.length === 0);
    expect(answers).toHaveLength(500);
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['success']));
    await node.end();

    const ends: Record<string, number> = {};
    const { rows } = await shop.query(
      `SELECT o.order_no, o.status, p.order_no AS paid, r.amount_minor AS back FROM shop_order o
       LEFT JOIN shop_payment p ON p.order_no = o.order_no
       LEFT JOIN shop_refund r ON r.order_no = o.order_no AND r.reason = 'LATE_PAYMENT'`,
      [],
    );
    for (const { status, paid, back } of rows) {
      const end = `${status}${paid === null ? '' : ' with payment'}${back === null ? '' : `, ${back} back`}`;
      ends[end] = (ends[end] ?? 0) + 1;
    }
    console.info(`seed ${seed}:`, ends);
    expect(rows).toHaveLength(500);
    expect(Object.keys(ends).sort()).toEqual(['CLOSED, 1250 back', 'PAID with payment']);
    const { body } = await call(`${base}/api/skus/${skuId}`);
    expect(body.stock).toBe(600 - (ends['PAID with payment'] ?? 0));
    expect((await audit()).violations).toEqual([]);
    await expectZeroLedger();
  }, 240_000);

  it('never refunds more than was captured, in 200 refunds at once', async () => {
    const orderNo = await makeOrder(base, await makeSku(base, 5)); // 1250
    await call(`${base}/api/orders/${orderNo}/pay`, 'POST');
    const answers = await flood(200, 200, (i) =>
      call(`${base}/api/orders/${orderNo}/refunds`, 'POST', { refundNo: `r${i}`, amountMinor: 20 }),
    );
    const codes = answers.map(({ status, body }) => body.code ?? status);
    expect(codes.filter((code) => code === 201)).toHaveLength(62);
    expect(codes.filter((code) => code === 'REFUND_EXCEEDS_CAPTURED')).toHaveLength(138);
    const { rows } = await shop.query(
      `SELECT count(*) AS n, sum(amount_minor) AS amount FROM shop_refund WHERE order_no = $1`,
      [orderNo],
    );
    expect([Number(rows[0]?.['n']), Number(rows[0]?.['amount'])]).toEqual([62, 1_240]);
    expect((await audit()).violations).toEqual([]);
    await expectZeroLedger();
  });

  /** Orders whose time to pay is over, each with an attempt that the customer has just paid. */
  async function dueAttempts(skuId: string, count: number): Promise<readonly Attempt[]> {
    const attempts = Array.from({ length: count }, () => {
      serial++;
      return { orderNo: `order-${serial}`, paymentNo: `P${serial}` };
    });
    const far = 9_000_000_000_000; // Nobody may close one before its attempt is there.
    const orders = attempts.map(
      ({ orderNo }, i) =>
        `('${orderNo}', 'u1', '${skuId}', 1, 1250, 'CNY', 'PENDING_PAY', 0, '${orderNo}', 0, ${far + i})`,
    );
    const tries = attempts.map(
      ({ orderNo, paymentNo }) => `('${paymentNo}', '${orderNo}', 1250, 'CNY', 'PENDING', 0)`,
    );
    await shop.query(
      `INSERT INTO shop_order (order_no, user_id, sku_id, quantity, amount_minor, currency, status,
         version, client_key, created_at_ms, due_at_ms) VALUES ${orders.join(', ')}`,
      [],
    );
    await shop.query(
      `INSERT INTO shop_payment_attempt (payment_no, order_no, amount_minor, currency, status,
         created_at_ms) VALUES ${tries.join(', ')}`,
      [],
    );
    const due = 'UPDATE shop_order SET due_at_ms = due_at_ms - $1 WHERE due_at_ms >= $1';
    await shop.query(due, [far]);
    return attempts;
  }

  async function expectZeroLedger(): Promise<void> {
    await until(async () => {
      const text = 'SELECT coalesce(sum(amount_minor), 0) AS amount FROM shop_ledger';
      return Number((await shop.query(text, [])).rows[0]?.['amount']) === 0;
    });
  }
});
