/** WRONG: the total is guarded by its update; the customer's own limit is a count made before. */
import { ShopError } from '../../../trade/shop-error.ts';
import { countRedemptions, insertRedemption } from './redemptions.ts';
import type { CouponContender } from './terms.ts';

export const totalOnly: CouponContender = {
  title: 'only the total guarded',
  idea: 'Counts the customer’s redemptions first; then a guarded update of the total, and the row.',
  breaks: ['overUser'],
  why: 'all presses of one customer count before one of them has inserted',
  open: ({ store: { database } }) => ({
    async redeem(wish) {
      const { perUser, usedByUser } = await countRedemptions(database, wish);
      if (usedByUser >= perUser) throw new ShopError('COUPON_EXHAUSTED', 'used up');
      await database.transaction(async (sql) => {
        const { affectedRows } = await sql.query(
          'UPDATE shop_coupon SET redeemed = redeemed + 1 WHERE coupon_id = $1 AND redeemed < total',
          [wish.couponId],
        );
        if (affectedRows === 0) throw new ShopError('COUPON_EXHAUSTED', 'used up');
        await insertRedemption(sql, wish);
      });
    },
  }),
};
