/** WRONG: the quota is guarded without a fault; the number is not looked at. A repeat is a new refund. */
import { openRefund } from '../../../trade/refunds.ts';
import { ShopError } from '../../../trade/shop-error.ts';
import type { RefundContender } from './terms.ts';

export const quotaOnly: RefundContender = {
  title: 'only the quota guarded',
  idea: 'Takes the amount off a guarded quota and writes the refund, whatever its number.',
  breaks: ['twice'],
  why: 'the repeat of a refund finds quota left',
  open: ({ store: { database } }) => ({
    async refund(wish) {
      const { orderNo, amountMinor } = wish;
      await database.transaction(async (sql) => {
        const { affectedRows } = await sql.query(
          `UPDATE shop_payment SET refunded_minor = refunded_minor + $2
           WHERE order_no = $1 AND amount_minor - refunded_minor >= $2`,
          [orderNo, amountMinor],
        );
        if (affectedRows === 0) throw new ShopError('REFUND_EXCEEDS_CAPTURED', 'too much');
        const rest = { paymentNo: null, reason: 'REQUESTED', status: 'SUCCEEDED' } as const;
        await openRefund(sql, { ...wish, ...rest });
      });
    },
  }),
};
