/** WRONG: looks first whether the money is paid or held, and then leaves it to the one who began. */
import { Refused } from '../../payment.ts';
import { checkOutBare } from './bare-checkout.ts';
import type { CheckoutContender } from './terms.ts';

export const statusFirst: CheckoutContender = {
  title: 'status first',
  idea: 'Answers “paid” or “in progress” where there is a payment of this number, else begins.',
  breaks: ['split', 'abandoned'],
  why: 'the one who was in progress is dead: paid is answered though the goods were never taken',
  open: ({ store: { database } }) => ({
    async checkout(request, trial) {
      const { rows } = await database.query(
        `SELECT state FROM shop_checkout
         WHERE user_id = $1 AND checkout_no = $2 AND state <> 'CANCELLED'`,
        [request.userId, request.checkoutNo],
      );
      const [row] = rows;
      if (row?.['state'] === 'CONFIRMED') return;
      if (row !== undefined) throw new Refused('IN_PROGRESS');
      await checkOutBare(database, request, trial);
    },
  }),
};
