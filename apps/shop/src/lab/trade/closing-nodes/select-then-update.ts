/** WRONG: selects the due orders and closes them one by one. The list is old when its end is reached. */
import { callbackOperation } from '../../../trade/callback.ts';
import { addUnit, readDueOrders } from './due-orders.ts';
import { activityId } from './sale.ts';
import type { ClosingContender } from './terms.ts';

export const selectThenUpdate: ClosingContender = {
  title: 'select, then update',
  idea: 'Selects the due orders, then sets each to CLOSED and gives its unit back.',
  breaks: ['restored', 'paidAndClosed'],
  why: 'three nodes have the same list, and payments come while it is worked off',
  open({ store }) {
    const { database } = store;
    const callback = callbackOperation(store);
    return {
      async close() {
        for (const orderNo of await readDueOrders(database)) {
          await database.transaction(async (sql) => {
            await sql.query("UPDATE shop_order SET status = 'CLOSED' WHERE order_no = $1", [
              orderNo,
            ]);
            await addUnit(sql, activityId);
          });
        }
      },
      callback: async (told) => (await callback(told)).value,
    };
  },
};
