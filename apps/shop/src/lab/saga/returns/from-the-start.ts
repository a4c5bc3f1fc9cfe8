/** WRONG: looks whether the refund is booked, remembers no other step. Whoever asks again does all of it. */
import { firstRow } from '../../../trade/store.ts';
import { Refused } from '../../payment.ts';
import { atChannel, book, couponBack, parcelOf, restock, settle, tell } from './bare-steps.ts';
import { LabChannel } from './lab-channel.ts';
import type { ReturnContender } from './terms.ts';

export const fromTheStart: ReturnContender = {
  title: 'from the start',
  idea: 'Books, refunds, restocks, gives the coupon back, tells; a repeat does all of it again.',
  breaks: ['twice', 'half'],
  why: 'the repeat knows of no step, and where nobody repeats, nobody goes on',
  open: ({ store: { database } }) => ({
    async giveBack(wish, trial) {
      const channel = new LabChannel(database, () => trial.at('asked'));
      const parcel = await database.transaction(async (sql) => {
        const found = await parcelOf(sql, wish);
        const text = 'SELECT 1 AS known FROM shop_refund WHERE order_no = $1 AND refund_no = $2';
        const known = await firstRow(sql, text, [found.orderNo, found.refundNo]);
        if (known === undefined) await book(sql, found);
        return found;
      });
      await trial.at('booked');
      const paid = await channel.refund(atChannel(parcel));
      await database.transaction((sql) => settle(sql, parcel, paid ? 'SUCCEEDED' : 'FAILED'));
      if (!paid) throw new Refused('REFUND_REFUSED');
      await trial.at('refunded');
      await database.transaction((sql) => restock(sql, parcel));
      await trial.at('restocked');
      await database.transaction((sql) => couponBack(sql, parcel));
      await trial.at('coupon-back');
      await database.transaction((sql) => tell(sql, parcel));
      await trial.at('told');
    },
  }),
};
