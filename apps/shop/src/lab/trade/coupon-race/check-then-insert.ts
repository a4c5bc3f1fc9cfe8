/** WRONG: counts what has been redeemed, then inserts one more. */
import { ShopError } from '../../../trade/shop-error.ts';
import { countRedemptions, insertRedemption } from './redemptions.ts';
import type { CouponContender } from './terms.ts';

export const checkThenInsert: CouponContender = {
  title: 'check, then insert',
  idea: 'Counts all redemptions and the customer’s own; while there is room, inserts.',
  breaks: ['overTotal', 'overUser'],
  why: 'all count before one of them has inserted',
  open: ({ store: { database } }) => ({
    async redeem(wish) {
      const { total, perUser, used, usedByUser } = await countRedemptions(database, wish);
      if (used >= total || usedByUser >= perUser) {
        throw new ShopError('COUPON_EXHAUSTED', 'used up');
      }
      await database.transaction(async (sql) => {
        await sql.query('UPDATE shop_coupon SET redeemed = redeemed + 1 WHERE coupon_id = $1', [
          wish.couponId,
        ]);
        await insertRedemption(sql, wish);
      });
    },
  }),
};
