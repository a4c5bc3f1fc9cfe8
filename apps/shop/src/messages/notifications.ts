/** Notifications: what a customer is to be told, one row per order and kind. */
import type { MessageEffect } from 'turngate/message';
import { nowMs, type Tx } from '../trade/store.ts';
import { orderPaidOf } from './order-paid.ts';

/**
 * The effect of a paid order's message. The row is the notification; whoever sends mail from it has an
 * effect outside the database, and takes (order, kind) as the key at its provider.
 */
export const notifyPaid: MessageEffect<Tx> = async (message, sql) => {
  const { orderNo, userId } = orderPaidOf(message);
  await sql.query(
    `INSERT INTO shop_notification (order_no, kind, user_id, at_ms)
     VALUES ($1, 'ORDER_PAID', $2, ${nowMs(sql)})`,
    [orderNo, userId],
  );
};
