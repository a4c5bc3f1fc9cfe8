/** Paying through the channel: an attempt is a thing of its own, an order may see several. */
import { randomBytes } from 'node:crypto';
import type { Operation } from 'turngate';
import type { SqlDatabase, SqlSession } from 'turngate/contract';
import { findOrBringBack } from './archive.ts';
import { type OrderRef, orderNotFound } from './order-flow.ts';
import { ShopError } from './shop-error.ts';
import { firstRow, nowMs, type Store, type Tx } from './store.ts';

/** An attempt to pay, waiting for the channel's callback. */
export interface PaymentAttempt {
  readonly paymentNo: string;
  readonly payUrl: string;
  readonly status: 'PENDING';
}

/** The n-th attempt for an order: a new one only after the one before has failed. */
export interface StartPayment extends OrderRef {
  readonly attempt: number;
}

/** What the customer's link to the channel says. */
export interface PayLink {
  readonly paymentNo: string;
  readonly orderNo: string;
  readonly amountMinor: number;
  readonly currency: string;
}

/** Declares the operation that starts an attempt. */
export function startPaymentOperation(
  { gate, database }: Store,
  payUrl: (link: PayLink) => string,
): Operation<Tx, StartPayment, PaymentAttempt> {
  return gate.operation({
    name: 'payment.start',
    key: ({ orderNo, attempt }: StartPayment) => `${orderNo}/${attempt}`,
    keySource: 'orderNo in the path; no header needed. A new attempt follows only a failed one',
    lock: ({ orderNo }) => `order:${orderNo}`,
    run: (start, { tx }) => insertAttempt(start, database.session(tx), payUrl),
  });
}

/** Which attempt a request means: failed ones are over. */
export async function currentAttempt(database: SqlDatabase<Tx>, orderNo: string): Promise<number> {
  const { rows } = await database.query(
    "SELECT count(*) AS failed FROM shop_every_payment_attempt WHERE order_no = $1 AND status = 'FAILED'",
    [orderNo],
  );
  return Number(rows[0]?.['failed']) + 1;
}

async function insertAttempt(
  { orderNo }: StartPayment,
  sql: SqlSession,
  payUrl: (link: PayLink) => string,
): Promise<PaymentAttempt> {
  const text =
    'SELECT status, amount_minor, currency FROM shop_order WHERE order_no = $1 FOR UPDATE';
  const order = await findOrBringBack(sql, orderNo, () => firstRow(sql, text, [orderNo]));
  if (order === undefined) throw orderNotFound(orderNo);
  if (order['status'] !== 'PENDING_PAY') {
    const state = String(order['status']);
    const message = `order ${orderNo} is ${state}; it takes no payment`;
    throw new ShopError('ORDER_STATE_CONFLICT', message, { orderStatus: state });
  }
  const paymentNo = `P${randomBytes(10).toString('hex')}`;
  const amountMinor = Number(order['amount_minor']);
  const currency = String(order['currency']);
  await sql.query(
    `INSERT INTO shop_payment_attempt
       (payment_no, order_no, amount_minor, currency, status, created_at_ms)
     VALUES ($1, $2, $3, $4, 'PENDING', ${nowMs(sql)})`,
    [paymentNo, orderNo, amountMinor, currency],
  );
  const link = { paymentNo, orderNo, amountMinor, currency };
  return { paymentNo, payUrl: payUrl(link), status: 'PENDING' };
}
