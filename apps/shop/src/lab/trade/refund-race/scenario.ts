/** Refunds of one order from many desks at once, together twice its payment, and each of them repeated. */
import { defineScenario, type ScenarioStage } from '../../scenario.ts';
import { countOf } from '../count.ts';
import { ShopFloor } from '../shop-floor.ts';
import { paymentWalls, refundWalls } from '../walls.ts';
import { quotaOnly } from './quota-only.ts';
import { right } from './right.ts';
import { sumThenInsert } from './sum-then-insert.ts';
import { type RefundVerbs, refundLaws } from './terms.ts';

const refundsPerOrder = 20;
/** Refunds whose answer was lost: they are repeated before the race begins. */
const answersLost = 3;
const amountMinor = 100;

export const refundRace = defineScenario({
  title: 'refund race',
  story:
    '20 refunds of a tenth of the payment for each order: three are repeated after their answer was ' +
    'lost, the others come at once and twice each.',
  laws: refundLaws,
  tables: [...paymentWalls, ...refundWalls],
  contenders: { turngate: right, 'sum-then-insert': sumThenInsert, 'quota-only': quotaOnly },
  /** Tells how many different refunds were confirmed. */
  async storm(stage: ScenarioStage<RefundVerbs>) {
    const orders = await new ShopFloor(stage.store).openPaidOrders(stage.quick ? 1 : 3);
    const confirmed = new Set<string>();
    const refundTwice = async (numbers: readonly number[], atOnce: boolean): Promise<void> => {
      const wishes = orders.flatMap((orderNo) =>
        numbers.map((i) => ({ orderNo, refundNo: `refund-${i}`, amountMinor })),
      );
      const send = (again: number) =>
        wishes.map(async (input, i) => {
          const reply = await stage.askUntilSettled({ verb: 'refund', input, node: i + again });
          if (reply.kind === 'done') confirmed.add(`${input.orderNo}/${input.refundNo}`);
        });
      const first = send(0);
      if (!atOnce) await Promise.all(first);
      await Promise.all([...first, ...send(1)]);
    };
    const numbers = Array.from({ length: refundsPerOrder }, (_, i) => i);
    await refundTwice(numbers.slice(0, answersLost), false);
    await refundTwice(numbers.slice(answersLost), true);
    return { confirmed: confirmed.size };
  },
  async audit(sql, { confirmed }) {
    const known = await countOf(
      sql,
      'SELECT count(*) AS n FROM (SELECT DISTINCT order_no, refund_no FROM shop_refund) AS r',
    );
    return {
      over: await countOf(
        sql,
        `SELECT count(*) AS n FROM shop_payment p WHERE p.amount_minor <
           (SELECT sum(amount_minor) FROM shop_refund r WHERE r.order_no = p.order_no)`,
      ),
      twice: (await countOf(sql, 'SELECT count(*) AS n FROM shop_refund')) - known,
      lost: Math.max(0, confirmed - known),
    };
  },
});
