/** WRONG: both sides read the state, decide, and write. They decide at the same time. */
import { ShopError } from '../../../trade/shop-error.ts';
import { bookPayment, overwriteAttempt, readOrderStatus, sendBack } from '../booking.ts';
import type { CancelContender } from './terms.ts';

export const readThenWrite: CancelContender = {
  title: 'read, then write',
  idea: 'Each reads the order’s state, decides by it (late money is sent back), and writes its own.',
  breaks: ['paidAndCancelled'],
  why: 'both read PENDING_PAY before the other one writes',
  open: ({ store: { database } }) => ({
    async cancel({ orderNo }) {
      if ((await readOrderStatus(database, orderNo)) !== 'PENDING_PAY') {
        throw new ShopError('ORDER_STATE_CONFLICT', `order ${orderNo} is not waiting for money`);
      }
      await database.query("UPDATE shop_order SET status = 'CANCELLED' WHERE order_no = $1", [
        orderNo,
      ]);
    },
    async callback(told) {
      const status = await readOrderStatus(database, told.orderNo);
      await database.transaction(async (sql) => {
        await overwriteAttempt(sql, told);
        if (status === 'PENDING_PAY') await bookPayment(sql, told);
        else await sendBack(sql, told);
      });
    },
  }),
};
