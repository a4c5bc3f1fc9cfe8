/** A coupon for a few, one each, and customers who try it on two orders in two tabs. */
import { couponOperations } from '../../../trade/coupons.ts';
import { defineScenario, type ScenarioStage } from '../../scenario.ts';
import { countOf } from '../count.ts';
import { couponWalls } from '../walls.ts';
import { checkThenInsert } from './check-then-insert.ts';
import { right } from './right.ts';
import { type CouponVerbs, couponLaws } from './terms.ts';
import { totalOnly } from './total-only.ts';

const couponId = 'coupon';
const full = { total: 20, users: 25 };
const quick = { total: 12, users: 12 };
/** Two orders of the customer, each pressed twice. */
const presses = ['order-1', 'order-1', 'order-2', 'order-2'];

export const couponRace = defineScenario({
  title: 'coupon race',
  story:
    '20 coupons, one each; 25 customers redeem at once, for two orders and with a double click on each.',
  laws: couponLaws,
  tables: couponWalls,
  contenders: { turngate: right, 'check-then-insert': checkThenInsert, 'total-only': totalOnly },
  async storm(stage: ScenarioStage<CouponVerbs>) {
    const { total, users } = stage.quick ? quick : full;
    await couponOperations(stage.store).create({ couponId, total, perUser: 1 });
    const wishes = Array.from({ length: users }, (_, user) =>
      presses.map((redeemNo) => ({ couponId, userId: `user-${user}`, redeemNo })),
    ).flat();
    await Promise.all(
      wishes.map((input, node) => stage.askUntilSettled({ verb: 'redeem', input, node })),
    );
    return { total, users };
  },
  async audit(sql, { total, users }) {
    const rows = 'FROM shop_coupon_redemption';
    const redeemed = await countOf(sql, `SELECT count(*) AS n ${rows}`);
    const served = await countOf(sql, `SELECT count(DISTINCT user_id) AS n ${rows}`);
    return {
      overTotal: Math.max(0, redeemed - total),
      overUser: redeemed - served,
      left: served < users ? Math.max(0, total - redeemed) : 0,
    };
  },
});
