/** RIGHT: the shop's own coupons. */
import { couponOperations } from '../../../trade/coupons.ts';
import type { CouponContender } from './terms.ts';

export const right: CouponContender = {
  title: 'turngate',
  idea: 'One operation per redemption; the total is a guarded update, whose row lock counts the customer.',
  breaks: [],
  why: 'repeats meet in the record, everybody else in the row of the coupon',
  open({ store }) {
    const { redeem } = couponOperations(store);
    return { redeem: async (wish) => (await redeem(wish)).value };
  },
};
