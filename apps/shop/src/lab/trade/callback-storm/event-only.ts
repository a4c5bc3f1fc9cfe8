/** WRONG: a faultless record per event, and no look at the attempt. One payment has two events. */
import type { PaymentCallback } from '../../../trade/callback.ts';
import { bookPayment, overwriteAttempt } from '../booking.ts';
import type { CallbackContender } from './terms.ts';

export const eventOnly: CallbackContender = {
  title: 'event id only',
  idea: 'Remembers event ids without a fault, and books for every new one.',
  breaks: ['twice'],
  why: 'the second event about the same trade is a new one to it',
  open({ store: { gate, database } }) {
    const callback = gate.operation({
      name: 'lab.callback',
      key: ({ eventId }: PaymentCallback) => eventId,
      async run(told, { tx }) {
        const sql = database.session(tx);
        if (told.status === 'FAILED') return;
        await overwriteAttempt(sql, told);
        await bookPayment(sql, told);
      },
    });
    return { callback: async (told) => void (await callback(told)) };
  },
};
