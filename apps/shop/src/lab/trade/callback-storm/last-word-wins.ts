/** WRONG: success is guarded, failure is not. A late one takes back what has been paid. */
import { bookPayment, overwriteAttempt } from '../booking.ts';
import type { CallbackContender } from './terms.ts';

export const lastWordWins: CallbackContender = {
  title: 'last word wins',
  idea: 'Books behind a guarded update, and writes FAILED over whatever is there.',
  breaks: ['forgotten'],
  why: 'the failure of the earlier try comes last and overwrites the success',
  open: ({ store: { database } }) => ({
    async callback(told) {
      await database.transaction(async (sql) => {
        if (told.status === 'FAILED') return await overwriteAttempt(sql, told);
        const { affectedRows } = await sql.query(
          `UPDATE shop_payment_attempt SET status = 'SUCCESS'
           WHERE payment_no = $1 AND status <> 'SUCCESS'`,
          [told.paymentNo],
        );
        if (affectedRows === 1) await bookPayment(sql, told);
      });
    },
  }),
};
