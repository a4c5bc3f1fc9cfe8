/** What the wrong ones write when they believe that money has come: no look at what is there already. */
import type { SqlSession } from 'turngate/contract';
import type { PaymentCallback } from '../../trade/callback.ts';
import { houseAccounts, post } from '../../trade/ledger.ts';
import { openRefund } from '../../trade/refunds.ts';
import { firstRow, nowMs } from '../../trade/store.ts';

type Money = Pick<PaymentCallback, 'orderNo' | 'paymentNo' | 'tradeNo' | 'amountMinor'>;

/** The order, its payment, the ledger and the shelf. */
export async function bookPayment(sql: SqlSession, money: Money): Promise<void> {
  const { orderNo, paymentNo, tradeNo, amountMinor } = money;
  await sql.query("UPDATE shop_order SET status = 'PAID' WHERE order_no = $1", [orderNo]);
  await sql.query(
    `INSERT INTO shop_payment
       (order_no, amount_minor, source, payment_no, trade_no, refunded_minor, paid_at_ms)
     VALUES ($1, $2, 'CHANNEL', $3, $4, 0, ${nowMs(sql)})`,
    [orderNo, amountMinor, paymentNo, tradeNo],
  );
  await post(sql, {
    txnId: `payment:${orderNo}`,
    kind: 'payment',
    entries: [
      { account: houseAccounts.channel, amountMinor: -amountMinor },
      { account: houseAccounts.sales, amountMinor },
    ],
  });
  await sql.query(
    `UPDATE shop_sku SET stock_current = stock_current - 1
     WHERE sku_id = (SELECT sku_id FROM shop_order WHERE order_no = $1)`,
    [orderNo],
  );
}

/** Money that found no order goes back. */
export async function sendBack(sql: SqlSession, money: Money): Promise<void> {
  const { orderNo, paymentNo, amountMinor } = money;
  const refundNo = `late-${paymentNo}`;
  const reason = 'LATE_PAYMENT';
  await openRefund(sql, { orderNo, refundNo, paymentNo, amountMinor, reason, status: 'PENDING' });
}

export async function readOrderStatus(
  sql: Pick<SqlSession, 'query'>,
  orderNo: string,
): Promise<unknown> {
  const { rows } = await sql.query('SELECT status FROM shop_order WHERE order_no = $1', [orderNo]);
  return rows[0]?.['status'];
}

export async function readAttemptStatus(sql: SqlSession, paymentNo: string): Promise<unknown> {
  const text = 'SELECT status FROM shop_payment_attempt WHERE payment_no = $1';
  return (await firstRow(sql, text, [paymentNo]))?.['status'];
}

/** Writes the status whatever it is by now. */
export async function overwriteAttempt(
  sql: SqlSession,
  { paymentNo, status }: Pick<PaymentCallback, 'paymentNo' | 'status'>,
): Promise<void> {
  await sql.query('UPDATE shop_payment_attempt SET status = $2 WHERE payment_no = $1', [
    paymentNo,
    status,
  ]);
}
