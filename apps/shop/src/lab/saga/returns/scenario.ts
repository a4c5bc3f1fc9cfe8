/** Everything is sent back, and the node that leads the return is killed in the middle of it. */
import { callbackOperation } from '../../../trade/callback.ts';
import { couponOperations } from '../../../trade/coupons.ts';
import { dieOver } from '../../die-over.ts';
import { defineScenario, type ScenarioStage } from '../../scenario.ts';
import { askEverywhere, untilNobodyWorks } from '../../settling.ts';
import { countOf } from '../../trade/count.ts';
import { ShopFloor } from '../../trade/shop-floor.ts';
import { doneOnly, stepTables } from './done-only.ts';
import { fromTheStart } from './from-the-start.ts';
import { channelTables } from './lab-channel.ts';
import { right } from './right.ts';
import { type ReturnPoint, type ReturnVerbs, returnLaws } from './terms.ts';

type Stage = ScenarioStage<ReturnVerbs>;

/** Where the node dies (nowhere: asked on every node at once), whether the channel refuses, and whether somebody asks again. */
interface Course {
  readonly diesAt?: ReturnPoint;
  readonly refused?: true;
  readonly again?: true;
}

/** At once in a wave is one per node, or one death would come before the other's step. */
const waves: readonly (readonly Course[])[] = [
  [{}, { diesAt: 'asked', again: true }, { diesAt: 'restocked', again: true }],
  [
    { diesAt: 'refunded' },
    { diesAt: 'coupon-back' },
    { diesAt: 'booked', refused: true, again: true },
  ],
];

const supplied = 10;
const couponId = 'ten-off';

export const returnDeaths = defineScenario({
  title: 'death over a return',
  story:
    'Returns over channel, shelf, coupon and word to the customer: asked three times at once, or killed ' +
    'after a step; some customers ask again, some are gone, and one refund the channel refuses.',
  laws: returnLaws,
  tables: [...channelTables, ...stepTables],
  contenders: { turngate: right, 'from-the-start': fromTheStart, 'done-only': doneOnly },
  async storm(stage: Stage): Promise<void> {
    const rounds = stage.quick ? 1 : 3;
    const shop = await openShop(stage);
    const play = async (course: Course, node: number, name: string): Promise<void> => {
      const orderNo = await shop.sell(name, course);
      const ask = { verb: 'giveBack', input: { orderNo, returnNo: 'all' } } as const;
      const { diesAt } = course;
      if (diesAt === undefined) return await askEverywhere(stage, ask);
      await dieOver(stage, { ...ask, node, hangAt: diesAt });
      if (course.again) await stage.askUntilSettled({ ...ask, node: node + 1 });
    };
    for (let round = 0; round < rounds; round++) {
      for (const [i, wave] of waves.entries()) {
        await Promise.all(wave.map((course, node) => play(course, node, `${round}-${i}-${node}`)));
      }
    }
    await untilNobodyWorks(stage);
  },
  audit: async (sql) => ({
    twice: await countOf(
      sql,
      `SELECT count(*) AS n FROM shop_sku WHERE stock_current > ${supplied}`,
    ),
    half: await countOf(
      sql,
      `SELECT count(*) AS n FROM shop_order o
       JOIN shop_payment p ON p.order_no = o.order_no
       JOIN lab_channel_refund c ON c.payment_no = p.payment_no
       JOIN shop_sku s ON s.sku_id = o.sku_id
       WHERE s.stock_current < ${supplied}
         OR EXISTS (SELECT 1 FROM shop_coupon_redemption r WHERE r.redeem_no = o.order_no)
         OR NOT EXISTS (SELECT 1 FROM shop_notification n
           WHERE n.order_no = o.order_no AND n.kind = 'ORDER_RETURNED')`,
    ),
    held: await countOf(
      sql,
      `SELECT count(*) AS n FROM shop_payment p
       JOIN lab_channel_refused c ON c.payment_no = p.payment_no WHERE p.refunded_minor > 0`,
    ),
  }),
});

/** The shop before the returns: each order has an article of its own, a coupon, and money from the channel. */
async function openShop({ store }: Stage) {
  const floor = new ShopFloor(store);
  const callback = callbackOperation(store);
  const { create, redeem } = couponOperations(store); // Declared once per gate.
  await create({ couponId, total: 1_000, perUser: 1 });
  return {
    async sell(name: string, { refused }: Course): Promise<string> {
      const [userId, skuId] = [`user-${name}`, `sku-${name}`];
      await floor.openSku(skuId, supplied);
      const orderNo = await floor.openOrder(userId, skuId);
      const paid = await floor.payAtChannel(orderNo);
      await callback({ ...paid, eventId: `event-${name}`, status: 'SUCCESS' });
      await redeem({ couponId, userId, redeemNo: orderNo });
      const text = 'INSERT INTO lab_channel_refused (payment_no) VALUES ($1)';
      if (refused) await store.database.query(text, [paid.paymentNo]);
      return orderNo;
    },
  };
}
