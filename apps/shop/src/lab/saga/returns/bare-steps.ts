/** The steps of a return with nothing around them: what the wrong ones put together. */
import type { SqlSession } from 'turngate/contract';
import { giveCouponBack } from '../../../trade/coupons.ts';
import { giveQuotaBack } from '../../../trade/refund-worker.ts';
import { bookRefund } from '../../../trade/refunds.ts';
import type { ReturnOrder } from '../../../trade/returns.ts';
import { firstRow, nowMs } from '../../../trade/store.ts';

/** What a step works on. */
export interface Parcel extends ReturnOrder {
  readonly refundNo: string;
  readonly userId: string;
  readonly skuId: string;
  readonly paymentNo: string;
  readonly amountMinor: number;
}

export async function parcelOf(sql: SqlSession, wish: ReturnOrder): Promise<Parcel> {
  const row = await firstRow(
    sql,
    `SELECT o.user_id, o.sku_id, p.payment_no, p.amount_minor
     FROM shop_order o JOIN shop_payment p ON p.order_no = o.order_no WHERE o.order_no = $1`,
    [wish.orderNo],
  );
  return {
    ...wish,
    refundNo: `return/${wish.returnNo}`,
    userId: String(row?.['user_id']),
    skuId: String(row?.['sku_id']),
    paymentNo: String(row?.['payment_no']),
    amountMinor: Number(row?.['amount_minor']),
  };
}

/** Takes the quota and books the refund. */
export async function book(sql: SqlSession, parcel: Parcel): Promise<void> {
  await bookRefund(parcel, 'RETURN', sql);
}

/** The refund leaves PENDING; one that failed gives its quota back. */
export async function settle(
  sql: SqlSession,
  parcel: Parcel,
  status: 'SUCCEEDED' | 'FAILED',
): Promise<void> {
  const { affectedRows } = await sql.query(
    `UPDATE shop_refund SET status = $3
     WHERE order_no = $1 AND refund_no = $2 AND status = 'PENDING'`,
    [parcel.orderNo, parcel.refundNo, status],
  );
  if (affectedRows > 0 && status === 'FAILED') await giveQuotaBack(sql, parcel);
}

export async function restock(sql: SqlSession, { skuId }: Parcel): Promise<void> {
  await sql.query('UPDATE shop_sku SET stock_current = stock_current + 1 WHERE sku_id = $1', [
    skuId,
  ]);
}

export const couponBack: (sql: SqlSession, parcel: Parcel) => Promise<void> = giveCouponBack;

export async function tell(sql: SqlSession, { orderNo, userId }: Parcel): Promise<void> {
  await sql.query(
    `INSERT INTO shop_notification (order_no, kind, user_id, at_ms)
     VALUES ($1, 'ORDER_RETURNED', $2, ${nowMs(sql)}) ON CONFLICT (order_no, kind) DO NOTHING`,
    [orderNo, userId],
  );
}

/** The number under which the channel knows the refund, for ever. */
export function atChannel({ orderNo, refundNo, paymentNo, amountMinor }: Parcel) {
  return { refundNo: `${orderNo}/${refundNo}`, paymentNo, amountMinor };
}
