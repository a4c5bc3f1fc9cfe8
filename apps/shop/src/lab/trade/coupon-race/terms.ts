/** What can be done with a coupon, and what must hold after it. */
import type { Redeem } from '../../../trade/coupons.ts';
import type { Contender, Law } from '../../scenario.ts';

export interface CouponVerbs {
  readonly redeem: Required<Redeem>;
}

export const couponLaws = {
  overTotal: {
    one: 'coupon too many',
    many: 'coupons too many',
    meaning: 'redeemed beyond the number that was issued',
  },
  overUser: {
    one: 'coupon over the limit',
    many: 'coupons over the limit',
    meaning: 'one each was the rule, and a customer has redeemed more',
  },
  left: {
    one: 'coupon withheld',
    many: 'coupons withheld',
    meaning: 'left over though customers without one were told that there are none',
  },
} as const satisfies Record<string, Law>;

export type CouponContender = Contender<CouponVerbs, keyof typeof couponLaws>;
