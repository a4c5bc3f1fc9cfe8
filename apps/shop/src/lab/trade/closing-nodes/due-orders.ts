/** Statements the mistakes share. The callback is the shop's own: only the closing is wrong. */
import type { SqlDatabase, SqlSession } from 'turngate/contract';
import { itemOf } from '../../../trade/activity-stock.ts';
import type { Tx } from '../../../trade/store.ts';

export async function readDueOrders(database: SqlDatabase<Tx>): Promise<string[]> {
  const { rows } = await database.query(
    `SELECT order_no FROM shop_order
     WHERE status IN ('PENDING_PAY', 'CLOSING') AND due_at_ms <= 0 ORDER BY order_no`,
    [],
  );
  return rows.map(({ order_no }) => String(order_no));
}

/** One more unit, whoever asks. */
export async function addUnit(sql: SqlSession, activityId: string): Promise<void> {
  await sql.query(
    `UPDATE turngate_stock_segment SET units_left = units_left + 1
     WHERE item = $1 AND segment = 0`,
    [itemOf(activityId)],
  );
}
