/** Units of flash sales: held with the order, settled when it is paid, given back when it ends. */
import type { SqlSession } from 'turngate/contract';
import { createStock } from 'turngate/stock';
import { firstRow } from './store.ts';

export const activityStock = createStock();

/** The stock item of an activity. */
export function itemOf(activityId: string): string {
  return `activity:${activityId}`;
}

/** The reservation of an order. */
export function reservationOf(orderNo: string): string {
  return `order:${orderNo}`;
}

/** An unpaid order of a flash sale holds a unit of it; whoever ends the order gives it back. */
export async function giveUnitBack(orderNo: string, sql: SqlSession): Promise<void> {
  if (await isOfActivity(orderNo, sql)) await activityStock.release(sql, reservationOf(orderNo));
}

/** A paid order keeps its unit for good. False: the order is not of a flash sale. */
export async function settleUnit(orderNo: string, sql: SqlSession): Promise<boolean> {
  if (!(await isOfActivity(orderNo, sql))) return false;
  await activityStock.settle(sql, reservationOf(orderNo));
  return true;
}

async function isOfActivity(orderNo: string, sql: SqlSession): Promise<boolean> {
  const text = 'SELECT activity_id FROM shop_order WHERE order_no = $1';
  return (await firstRow(sql, text, [orderNo]))?.['activity_id'] != null;
}
