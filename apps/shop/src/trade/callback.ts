/**
 * The channel tells how an attempt ended. It tells it again until it hears "success", in any order,
 * and sometimes after the order is gone: money that finds no order is sent back.
 */
import type { Operation } from 'turngate';
import type { SqlSession } from 'turngate/contract';
import { giveUnitBack } from './activity-stock.ts';
import { bringBackByPayment } from './archive.ts';
import { capture } from './capture.ts';
import { houseAccounts, post } from './ledger.ts';
import { orderFlow } from './order-flow.ts';
import { openRefund } from './refunds.ts';
import { ShopError } from './shop-error.ts';
import { firstRow, nowMs, type Store, type Tx } from './store.ts';

/** What the channel sends, after its signature was checked over the raw bytes. */
export interface PaymentCallback {
  readonly eventId: string;
  readonly paymentNo: string;
  readonly orderNo: string;
  readonly tradeNo: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly status: 'SUCCESS' | 'FAILED';
  readonly paidAt: string;
}

/** What the callback did. `mismatch` is on record as a break and answered as an error. */
export type CallbackEffect = 'paid' | 'failed' | 'late-refund' | 'nothing-new' | 'mismatch';

/** The operation behind every word from the channel. */
export type Callback = Operation<Tx, PaymentCallback, CallbackEffect>;

/** Declares it. */
export function callbackOperation({ gate, database }: Store): Callback {
  return gate.operation({
    name: 'payment.callback',
    key: ({ eventId }: PaymentCallback) => eventId,
    keySource: 'eventId in the signed body; no header needed',
    // Closing and cancelling the order compete with the callback: the same lock, the same guard.
    lock: ({ orderNo }) => `order:${orderNo}`,
    run: (callback, { tx }) => apply(callback, database.session(tx)),
  });
}

async function apply(callback: PaymentCallback, sql: SqlSession): Promise<CallbackEffect> {
  const { paymentNo } = callback;
  const text = `SELECT order_no, amount_minor, currency, status FROM shop_payment_attempt
    WHERE payment_no = $1 FOR UPDATE`;
  let attempt = await firstRow(sql, text, [paymentNo]);
  if (attempt === undefined) {
    await bringBackByPayment(sql, paymentNo);
    attempt = await firstRow(sql, text, [paymentNo]);
  }
  const mismatch = mismatchOf(callback, attempt);
  if (mismatch !== undefined) {
    await recordBreak(sql, 'CALLBACK_MISMATCH', `${paymentNo}/${callback.eventId}`, mismatch);
    return 'mismatch';
  }
  if (callback.status === 'FAILED') return fail(callback, sql);
  // The attempt moves once; a second event about the same trade finds it moved.
  const { affectedRows } = await sql.query(
    `UPDATE shop_payment_attempt
     SET status = 'SUCCESS', trade_no = $2, settled_at_ms = ${nowMs(sql)}
     WHERE payment_no = $1 AND status <> 'SUCCESS'`,
    [paymentNo, callback.tradeNo],
  );
  if (affectedRows === 0) return 'nothing-new';
  return (await payOrder(callback, sql)) ? 'paid' : refundLate(callback, sql);
}

function mismatchOf(
  callback: PaymentCallback,
  attempt: Record<string, unknown> | undefined,
): string | undefined {
  if (attempt === undefined) return 'unknown payment';
  if (attempt['order_no'] !== callback.orderNo) return 'another order';
  if (Number(attempt['amount_minor']) !== callback.amountMinor) return 'another amount';
  if (attempt['currency'] !== callback.currency) return 'another currency';
  return undefined;
}

/** A failure may only end an attempt that waits: money that came is not taken back by a late event. */
async function fail({ paymentNo }: PaymentCallback, sql: SqlSession): Promise<CallbackEffect> {
  const { affectedRows } = await sql.query(
    `UPDATE shop_payment_attempt SET status = 'FAILED', settled_at_ms = ${nowMs(sql)}
     WHERE payment_no = $1 AND status = 'PENDING'`,
    [paymentNo],
  );
  return affectedRows === 0 ? 'nothing-new' : 'failed';
}

/** False when the order cannot take the money any more. */
async function payOrder(callback: PaymentCallback, sql: SqlSession): Promise<boolean> {
  const { orderNo, paymentNo, tradeNo } = callback;
  await sql.query('SAVEPOINT shop_pay', []);
  const move = await orderFlow.fire('pay', { tx: sql, id: orderNo });
  if (move.kind !== 'applied') return false; // Closed, cancelled, or paid by other means.
  try {
    await capture(sql, { orderNo, source: 'CHANNEL', paymentNo, tradeNo });
    await sql.query('RELEASE SAVEPOINT shop_pay', []);
    return true;
  } catch (error) {
    if (!(error instanceof ShopError && error.code === 'OUT_OF_STOCK')) throw error;
    // Paid for what is gone: the order ends, the money goes back.
    await sql.query('ROLLBACK TO SAVEPOINT shop_pay', []);
    await orderFlow.fire('close', { tx: sql, id: orderNo });
    await giveUnitBack(orderNo, sql);
    return false;
  }
}

async function refundLate(callback: PaymentCallback, sql: SqlSession): Promise<CallbackEffect> {
  const { orderNo, paymentNo, amountMinor } = callback;
  await post(sql, {
    txnId: `late:${paymentNo}`,
    kind: 'late payment',
    entries: [
      { account: houseAccounts.channel, amountMinor: -amountMinor },
      { account: houseAccounts.suspense, amountMinor },
    ],
  });
  await openRefund(sql, {
    orderNo,
    refundNo: `late-${paymentNo}`,
    paymentNo,
    amountMinor,
    reason: 'LATE_PAYMENT',
    status: 'PENDING',
  });
  return 'late-refund';
}

/** Notes a difference for people and for reconciliation; noting it again changes nothing. */
async function recordBreak(
  sql: SqlSession,
  code: string,
  key: string,
  detail: string,
): Promise<void> {
  const known = await firstRow(
    sql,
    'SELECT 1 AS known FROM shop_break WHERE code = $1 AND break_key = $2',
    [code, key],
  );
  if (known !== undefined) return;
  await sql.query(
    `INSERT INTO shop_break (code, break_key, detail, at_ms) VALUES ($1, $2, $3, ${nowMs(sql)})`,
    [code, key, detail],
  );
}
