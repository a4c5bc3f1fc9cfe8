/** The channel tells of every payment several times, by several events, and in any order. */
import type { PaymentCallback } from '../../../trade/callback.ts';
import { defineScenario, type ScenarioStage } from '../../scenario.ts';
import { countOf } from '../count.ts';
import { ShopFloor } from '../shop-floor.ts';
import { paymentWalls } from '../walls.ts';
import { checkThenBook } from './check-then-book.ts';
import { eventOnly } from './event-only.ts';
import { lastWordWins } from './last-word-wins.ts';
import { right } from './right.ts';
import { type CallbackVerbs, callbackLaws } from './terms.ts';

const repeats = 4;

export const callbackStorm = defineScenario({
  title: 'callback storm',
  story:
    'The channel tells of each payment four times at once and by a second event, to three nodes; ' +
    'at last comes the failure of an earlier try.',
  laws: callbackLaws,
  tables: paymentWalls,
  contenders: {
    turngate: right,
    'check-then-book': checkThenBook,
    'event-only': eventOnly,
    'last-word-wins': lastWordWins,
  },
  async storm(stage: ScenarioStage<CallbackVerbs>) {
    const floor = new ShopFloor(stage.store);
    const orders = await floor.openOrders(stage.quick ? 6 : 20);
    await Promise.all(
      orders.map(async (orderNo, i) => {
        const payment = await floor.payAtChannel(orderNo);
        const tell = (eventId: string, status: PaymentCallback['status'], node: number) =>
          stage.askUntilSettled({
            verb: 'callback',
            input: { ...payment, eventId: `${payment.paymentNo}/${eventId}`, status },
            node: i + node,
          });
        const first = Array.from({ length: repeats }, (_, node) => tell('paid', 'SUCCESS', node));
        await Promise.all([...first, tell('paid-by-query', 'SUCCESS', 1)]);
        await tell('failed-before', 'FAILED', 2);
      }),
    );
  },
  audit: async (sql) => ({
    twice: await countOf(
      sql,
      `SELECT sum(rows - 1) AS n FROM
         (SELECT count(*) AS rows FROM shop_payment GROUP BY order_no) AS p`,
    ),
    // Every attempt of this storm was paid.
    forgotten: await countOf(
      sql,
      `SELECT count(*) AS n FROM shop_payment_attempt t JOIN shop_order o ON o.order_no = t.order_no
       WHERE t.status <> 'SUCCESS' OR o.status <> 'PAID' OR NOT EXISTS
         (SELECT 1 FROM shop_payment p WHERE p.payment_no = t.payment_no) OR EXISTS
         (SELECT 1 FROM shop_refund r WHERE r.payment_no = t.payment_no)`,
    ),
  }),
});
