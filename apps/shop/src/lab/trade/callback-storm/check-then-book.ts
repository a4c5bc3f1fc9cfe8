/** WRONG: reads the status of the attempt, then books. Between the two, others have read the same. */
import { bookPayment, overwriteAttempt, readAttemptStatus } from '../booking.ts';
import type { CallbackContender } from './terms.ts';

export const checkThenBook: CallbackContender = {
  title: 'check, then book',
  idea: 'Reads the status of the attempt; while it is not SUCCESS, books in a transaction.',
  breaks: ['twice'],
  why: 'all four repeats read PENDING before one of them has committed',
  open: ({ store: { database } }) => ({
    async callback(told) {
      if ((await readAttemptStatus(database, told.paymentNo)) === 'SUCCESS') return;
      await database.transaction(async (sql) => {
        await overwriteAttempt(sql, told);
        if (told.status === 'SUCCESS') await bookPayment(sql, told);
      });
    },
  }),
};
