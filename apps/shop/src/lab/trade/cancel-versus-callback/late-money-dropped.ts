/** WRONG: the states are guarded without a fault; money that comes too late is noted and left lying. */
import { orderOperations } from '../../../trade/orders.ts';
import { bookPayment, overwriteAttempt } from '../booking.ts';
import type { CancelContender } from './terms.ts';

export const lateMoneyDropped: CancelContender = {
  title: 'late money dropped',
  idea: 'Guarded moves on both sides; a callback that finds the order cancelled is only acknowledged.',
  breaks: ['kept'],
  why: 'the channel hears "success", and nobody sends the money back',
  open({ store }) {
    const { database } = store;
    const { cancel } = orderOperations(store);
    return {
      cancel: async (order) => (await cancel(order)).value,
      async callback(told) {
        await database.transaction(async (sql) => {
          await overwriteAttempt(sql, told);
          const { affectedRows } = await sql.query(
            `UPDATE shop_order SET status = 'PAID', version = version + 1
             WHERE order_no = $1 AND status = 'PENDING_PAY'`,
            [told.orderNo],
          );
          if (affectedRows === 1) await bookPayment(sql, told);
        });
      },
    };
  },
};
