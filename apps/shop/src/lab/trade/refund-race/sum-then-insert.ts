/** WRONG: looks for the number, adds the refunds up, and inserts while there is room. */
import { openRefund, type RefundOrder } from '../../../trade/refunds.ts';
import { ShopError } from '../../../trade/shop-error.ts';
import type { RefundContender } from './terms.ts';

export const sumThenInsert: RefundContender = {
  title: 'sum, then insert',
  idea: 'Looks whether the number is known, adds up what was refunded, and inserts while there is room.',
  breaks: ['over', 'twice'],
  why: 'all add up before one of them has inserted, and so do the repeats',
  open: ({ store: { database } }) => ({
    async refund(wish: RefundOrder) {
      const { rows } = await database.query(
        `SELECT p.amount_minor AS captured, coalesce(sum(r.amount_minor), 0) AS refunded,
           count(*) FILTER (WHERE r.refund_no = $2) AS known
         FROM shop_payment p LEFT JOIN shop_refund r ON r.order_no = p.order_no
         WHERE p.order_no = $1 GROUP BY p.amount_minor`,
        [wish.orderNo, wish.refundNo],
      );
      const { captured, refunded, known } = rows[0] as Record<string, unknown>;
      if (Number(known) > 0) return;
      if (Number(refunded) + wish.amountMinor > Number(captured)) {
        throw new ShopError('REFUND_EXCEEDS_CAPTURED', 'too much');
      }
      await database.transaction((sql) =>
        openRefund(sql, { ...wish, paymentNo: null, reason: 'REQUESTED', status: 'SUCCEEDED' }),
      );
    },
  }),
};
