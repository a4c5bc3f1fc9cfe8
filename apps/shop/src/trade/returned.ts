/** Whether an order has been sent back. */
import type { SqlSession } from 'turngate/contract';
import { firstRow } from './store.ts';

/** True while the goods of an order are on their way back, or back: it must not be shipped. */
export async function isReturned(orderNo: string, sql: SqlSession): Promise<boolean> {
  const text = "SELECT 1 AS known FROM shop_return WHERE order_no = $1 AND status <> 'REFUSED'";
  return (await firstRow(sql, text, [orderNo])) !== undefined;
}
