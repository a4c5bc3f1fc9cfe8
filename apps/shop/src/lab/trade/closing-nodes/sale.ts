/** The sale whose orders are left unpaid. */
import { activityOperations } from '../../../trade/activities.ts';
import type { Store } from '../../../trade/store.ts';
import type { ShopFloor } from '../shop-floor.ts';

export const activityId = 'sale';

/** As many orders as the sale has units, all of them due. */
export async function openDueOrders(
  store: Store,
  floor: ShopFloor,
  units: number,
): Promise<string[]> {
  const { create, purchase } = activityOperations(store);
  await create({ activityId, skuId: await floor.openSku(), units, perUser: 1 });
  const bought = Array.from({ length: units }, async (_, i) => {
    return (await purchase({ activityId, userId: `user-${i}` })).value.orderNo;
  });
  const orders = await Promise.all(bought);
  await store.database.query('UPDATE shop_order SET due_at_ms = 0', []);
  return orders;
}
