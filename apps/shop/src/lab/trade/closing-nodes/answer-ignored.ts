/** WRONG: the update is guarded, and nobody looks whether it has moved a row. */
import { callbackOperation } from '../../../trade/callback.ts';
import { addUnit, readDueOrders } from './due-orders.ts';
import { activityId } from './sale.ts';
import type { ClosingContender } from './terms.ts';

export const answerIgnored: ClosingContender = {
  title: 'answer ignored',
  idea: 'Closes by a guarded update, and gives the unit back whether it moved the order or not.',
  breaks: ['restored'],
  why: 'the second node’s update moves nothing, and its unit comes back all the same',
  open({ store }) {
    const { database } = store;
    const callback = callbackOperation(store);
    return {
      async close() {
        for (const orderNo of await readDueOrders(database)) {
          await database.transaction(async (sql) => {
            await sql.query(
              `UPDATE shop_order SET status = 'CLOSED'
               WHERE order_no = $1 AND status IN ('PENDING_PAY', 'CLOSING')`,
              [orderNo],
            );
            await addUnit(sql, activityId);
          });
        }
      },
      callback: async (told) => (await callback(told)).value,
    };
  },
};
