/** Refunds: never more than was captured, each number once. */
import type { Operation } from 'turngate';
import type { SqlSession } from 'turngate/contract';
import { addToBalance } from './accounts.ts';
import { findOrBringBack } from './archive.ts';
import { payer } from './capture.ts';
import { houseAccounts, post } from './ledger.ts';
import { orderNotFound } from './order-flow.ts';
import { ShopError } from './shop-error.ts';
import { firstRow, nowMs, type Store, type Tx } from './store.ts';

/** A wish to give money back. The number is the caller's, unique per order. */
export interface RefundOrder {
  readonly orderNo: string;
  readonly refundNo: string;
  readonly amountMinor: number;
}

/** SUCCEEDED at once from the balance or in cash; PENDING until the channel has confirmed. */
export interface Refund {
  readonly refundNo: string;
  readonly status: 'PENDING' | 'SUCCEEDED';
}

/** A refund row to be written. */
export interface NewRefund extends RefundOrder {
  readonly paymentNo: string | null;
  /** RETURN: its saga carries it out, not the worker. */
  readonly reason: 'REQUESTED' | 'LATE_PAYMENT' | 'RETURN';
  readonly status: Refund['status'];
}

/** Declares the operation. */
export function refundOperation({ gate, database }: Store): Operation<Tx, RefundOrder, Refund> {
  return gate.operation({
    name: 'order.refund',
    scope: ({ orderNo }: RefundOrder) => `order:${orderNo}`,
    key: ({ refundNo }: RefundOrder) => refundNo,
    keySource: 'refundNo in the body, per order; no header needed',
    fingerprint: ({ amountMinor }) => ({ amountMinor }),
    retentionMs: 3_650 * 86_400_000, // The channel knows the refund by this number for ever.
    run: (refund, { tx }) => refundOrder(refund, database.session(tx)),
  });
}

function refundOrder(refund: RefundOrder, sql: SqlSession): Promise<Refund> {
  return bookRefund(refund, 'REQUESTED', sql);
}

/**
 * Takes the quota, writes the refund and its ledger entry; what came through the channel stays PENDING.
 *
 * @throws ORDER_NOT_FOUND, ORDER_STATE_CONFLICT, REFUND_EXCEEDS_CAPTURED
 */
export async function bookRefund(
  refund: RefundOrder,
  reason: 'REQUESTED' | 'RETURN',
  sql: SqlSession,
): Promise<Refund> {
  const { orderNo, refundNo, amountMinor } = refund;
  // The quota and the refund row commit together; the guard decides, not a sum read before.
  const taken = await findOrBringBack(sql, orderNo, async () => {
    const { affectedRows } = await sql.query(
      `UPDATE shop_payment SET refunded_minor = refunded_minor + $2
       WHERE order_no = $1 AND amount_minor - refunded_minor >= $2`,
      [orderNo, amountMinor],
    );
    return affectedRows > 0 ? true : undefined;
  });
  if (taken === undefined) throw await whyNot(orderNo, sql);
  const payment = await firstRow(
    sql,
    `SELECT p.source, p.payment_no, o.user_id FROM shop_payment p
     JOIN shop_order o ON o.order_no = p.order_no WHERE p.order_no = $1`,
    [orderNo],
  );
  const source = String(payment?.['source']);
  const userId = String(payment?.['user_id']);
  const status = source === 'CHANNEL' ? 'PENDING' : 'SUCCEEDED';
  const paymentNo = (payment?.['payment_no'] ?? null) as string | null;
  await openRefund(sql, { ...refund, paymentNo, reason, status });
  if (source === 'BALANCE') await addToBalance(sql, userId, amountMinor);
  await post(sql, {
    txnId: `refund:${orderNo}:${refundNo}`,
    kind: 'refund',
    entries: [
      { account: houseAccounts.sales, amountMinor: -amountMinor },
      { account: payer(source, userId), amountMinor },
    ],
  });
  return { refundNo, status };
}

/** Writes the refund; a PENDING one is carried out by the channel worker. */
export async function openRefund(sql: SqlSession, refund: NewRefund): Promise<void> {
  const { orderNo, refundNo, paymentNo, amountMinor, reason, status } = refund;
  await sql.query(
    `INSERT INTO shop_refund (order_no, refund_no, payment_no, amount_minor, reason, status,
       attempts, next_at_ms, created_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, 0, ${nowMs(sql)}, ${nowMs(sql)})`,
    [orderNo, refundNo, paymentNo, amountMinor, reason, status],
  );
}

async function whyNot(orderNo: string, sql: SqlSession): Promise<ShopError> {
  const order = await firstRow(
    sql,
    `SELECT o.status AS status, p.order_no AS paid FROM shop_order o
     LEFT JOIN shop_payment p ON p.order_no = o.order_no WHERE o.order_no = $1`,
    [orderNo],
  );
  if (order === undefined) return orderNotFound(orderNo);
  if (order['paid'] == null) {
    const state = String(order['status']);
    const message = `order ${orderNo} is ${state}; there is nothing to refund`;
    return new ShopError('ORDER_STATE_CONFLICT', message, { orderStatus: state });
  }
  const message = `refunds of order ${orderNo} would exceed what was captured`;
  return new ShopError('REFUND_EXCEEDS_CAPTURED', message);
}
