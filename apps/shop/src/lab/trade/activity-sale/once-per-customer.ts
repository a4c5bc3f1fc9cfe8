/** The part the mistakes about stock leave right: an order per customer and sale, and no second one. */

import type { SqlSession } from 'turngate/contract';
import type { Purchase, Purchased } from '../../../trade/activities.ts';
import { writeOrder } from '../../../trade/orders.ts';
import type { Store } from '../../../trade/store.ts';

/** Orders once; `takeUnit` runs in the order's transaction. */
export function oncePerCustomer(
  { gate, database }: Store,
  takeUnit: (activityId: string, sql: SqlSession) => Promise<void>,
): (wish: Purchase) => Promise<Purchased> {
  const order = gate.operation({
    name: 'lab.purchase',
    key: ({ activityId, userId }: Purchase) => `${activityId}/${userId}`,
    async run({ activityId, userId }, { tx }) {
      const sql = database.session(tx);
      await takeUnit(activityId, sql);
      return await orderUnit({ activityId, userId }, sql);
    },
  });
  return async (wish) => (await order(wish)).value;
}

/** An order of one unit of the sale. */
export async function orderUnit(
  { activityId, userId }: Purchase,
  sql: SqlSession,
): Promise<Purchased> {
  const order = {
    userId,
    skuId: 'sku',
    quantity: 1,
    clientKey: `activity/${activityId}`,
    activityId,
  };
  return { orderNo: (await writeOrder(order, sql)).orderNo };
}
