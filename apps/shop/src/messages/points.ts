/** Points: one for every hundred minor units of a paid order, written once per order. */
import type { SqlDatabase } from 'turngate/contract';
import type { MessageEffect } from 'turngate/message';
import { nowMs, type Tx } from '../trade/store.ts';
import { orderPaidOf } from './order-paid.ts';

const minorUnitsPerPoint = 100;

/** The effect of a paid order's message. */
export const givePoints: MessageEffect<Tx> = async (message, sql) => {
  const { orderNo, userId, amountMinor } = orderPaidOf(message);
  await sql.query(
    `INSERT INTO shop_points (order_no, user_id, points, at_ms) VALUES ($1, $2, $3, ${nowMs(sql)})`,
    [orderNo, userId, Math.floor(amountMinor / minorUnitsPerPoint)],
  );
};

/** A customer's points; who never had any has zero. */
export async function readPoints(database: SqlDatabase<Tx>, userId: string): Promise<number> {
  const text = 'SELECT coalesce(sum(points), 0) AS points FROM shop_points WHERE user_id = $1';
  const { rows } = await database.query(text, [userId]);
  return Number(rows[0]?.['points']);
}
