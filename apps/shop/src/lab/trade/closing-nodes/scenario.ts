/** Three nodes close the same due orders, while the channel tells that some of them were paid. */
import { setTimeout as sleep } from 'node:timers/promises';
import { itemOf } from '../../../trade/activity-stock.ts';
import { defineScenario, type ScenarioStage } from '../../scenario.ts';
import { countOf } from '../count.ts';
import { ShopFloor } from '../shop-floor.ts';
import { paymentWalls } from '../walls.ts';
import { answerIgnored } from './answer-ignored.ts';
import { right } from './right.ts';
import { activityId, openDueOrders } from './sale.ts';
import { selectThenUpdate } from './select-then-update.ts';
import { type ClosingVerbs, closingLaws } from './terms.ts';

/** While the list is worked off: some before their order's turn, some after. */
const paidAfterMs = { min: 0, max: 150 };

export const closingNodes = defineScenario({
  title: 'closing on every node',
  story:
    'Orders of a sale are due; three nodes close them in the same moment, twice, while every second ' +
    'customer has just paid.',
  laws: closingLaws,
  tables: paymentWalls,
  contenders: {
    turngate: right,
    'select-then-update': selectThenUpdate,
    'answer-ignored': answerIgnored,
  },
  async storm(stage: ScenarioStage<ClosingVerbs>) {
    const floor = new ShopFloor(stage.store);
    const units = stage.quick ? 16 : 30;
    const orders = await openDueOrders(stage.store, floor, units);
    const paying = await Promise.all(
      orders.filter((_, i) => i % 2 === 0).map((orderNo) => floor.payAtChannel(orderNo)),
    );
    const pays = paying.map(async (payment, node) => {
      await sleep(stage.chance.between(paidAfterMs.min, paidAfterMs.max));
      const input = {
        ...payment,
        eventId: `paid/${payment.paymentNo}`,
        status: 'SUCCESS',
      } as const;
      await stage.askUntilSettled({ verb: 'callback', input, node });
    });
    const closes = Array.from({ length: stage.nodeCount }, async (_, node) => {
      for (let round = 0; round < 2; round++) {
        await stage.askUntilSettled({ verb: 'close', input: null, node });
      }
    });
    await Promise.all([...pays, ...closes]);
    return { units };
  },
  async audit(sql, { units }) {
    const left = await countOf(
      sql,
      `SELECT sum(units_left) AS n FROM turngate_stock_segment WHERE item = '${itemOf(activityId)}'`,
    );
    const living = "SELECT count(*) AS n FROM shop_order WHERE status <> 'CLOSED'";
    const surplus = left + (await countOf(sql, living)) - units;
    const open = await countOf(
      sql,
      "SELECT count(*) AS n FROM shop_order WHERE status IN ('PENDING_PAY', 'CLOSING')",
    );
    return {
      restored: Math.max(0, surplus),
      paidAndClosed: await countOf(
        sql,
        `SELECT count(*) AS n FROM shop_order o JOIN shop_payment p ON p.order_no = o.order_no
         WHERE o.status = 'CLOSED' AND NOT EXISTS
           (SELECT 1 FROM shop_refund r WHERE r.order_no = o.order_no)`,
      ),
      left: open + Math.max(0, -surplus),
    };
  },
});
