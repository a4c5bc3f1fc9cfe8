/** Money taken for an order: takes the stock, books the payment, writes the ledger, tells it. */
import type { SqlSession } from 'turngate/contract';
import { tellOrderPaid } from '../messages/order-paid.ts';
import { settleUnit } from './activity-stock.ts';
import { customerAccount, houseAccounts, post } from './ledger.ts';
import { ShopError } from './shop-error.ts';
import { firstRow, isoTime, nowMs } from './store.ts';

/** Where the money of an instant payment comes from. */
export type PayFrom = 'CASH' | 'BALANCE';

/** Money for an order. */
export interface Capture {
  readonly orderNo: string;
  readonly source: PayFrom | 'CHANNEL';
  /** The channel's attempt and trade, when the money came through it. */
  readonly paymentNo?: string;
  readonly tradeNo?: string;
}

/** What was captured, and from whom. */
export interface Captured {
  readonly userId: string;
  readonly amountMinor: number;
}

/**
 * Call it only after the order has moved to PAID in the same transaction: the guarded move is what
 * makes it happen once.
 *
 * @throws OUT_OF_STOCK, so that the move is rolled back and the key stays free
 */
export async function capture(
  sql: SqlSession,
  { orderNo, source, ...channel }: Capture,
): Promise<Captured> {
  const order = await firstRow(
    sql,
    'SELECT user_id, sku_id, quantity, amount_minor FROM shop_order WHERE order_no = $1',
    [orderNo],
  );
  const { user_id, sku_id, quantity, amount_minor } = order as Record<string, string>;
  // A flash sale has taken its units out of the article's stock already.
  const isActivity = await settleUnit(orderNo, sql);
  if (!isActivity) await takeStock(sql, sku_id as string, Number(quantity), orderNo);
  const amountMinor = Number(amount_minor);
  const userId = user_id as string;
  const { paymentNo = null, tradeNo = null } = channel;
  await sql.query(
    `INSERT INTO shop_payment
       (order_no, amount_minor, source, payment_no, trade_no, refunded_minor, paid_at_ms)
     VALUES ($1, $2, $3, $4, $5, 0, ${nowMs(sql)})`,
    [orderNo, amountMinor, source, paymentNo, tradeNo],
  );
  await post(sql, {
    txnId: `payment:${orderNo}`,
    kind: 'payment',
    entries: [
      { account: payer(source, userId), amountMinor: -amountMinor },
      { account: houseAccounts.sales, amountMinor },
    ],
  });
  await tellOrderPaid(sql, { orderNo, userId, amountMinor });
  return { userId, amountMinor };
}

/** The payment of an order that has one. */
export async function readCapture(
  sql: SqlSession,
  orderNo: string,
): Promise<{ readonly amountMinor: number; readonly paidAt: string }> {
  const text = 'SELECT amount_minor, paid_at_ms FROM shop_payment WHERE order_no = $1';
  const row = await firstRow(sql, text, [orderNo]);
  return { amountMinor: Number(row?.['amount_minor']), paidAt: isoTime(row?.['paid_at_ms']) };
}

/** The ledger account money of an order comes from and goes back to. */
export function payer(source: string, userId: string): string {
  if (source === 'BALANCE') return customerAccount(userId);
  return source === 'CHANNEL' ? houseAccounts.channel : houseAccounts.outside;
}

/** The guard in the statement decides, not a read. */
async function takeStock(
  sql: SqlSession,
  skuId: string,
  quantity: number,
  orderNo: string,
): Promise<void> {
  const { affectedRows } = await sql.query(
    `UPDATE shop_sku SET stock_current = stock_current - $2
     WHERE sku_id = $1 AND stock_current >= $2`,
    [skuId, quantity],
  );
  if (affectedRows === 0) throw new ShopError('OUT_OF_STOCK', `not enough stock for ${orderNo}`);
}
