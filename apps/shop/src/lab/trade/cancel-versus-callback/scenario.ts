/** The customer cancels while the channel tells of the payment. */
import { setTimeout as sleep } from 'node:timers/promises';
import { defineScenario, type ScenarioStage } from '../../scenario.ts';
import { ShopFloor } from '../shop-floor.ts';
import { paymentWalls } from '../walls.ts';
import { lateMoneyDropped } from './late-money-dropped.ts';
import { readThenWrite } from './read-then-write.ts';
import { right } from './right.ts';
import { type CancelVerbs, cancelLaws } from './terms.ts';

/** A callback takes longer than a cancellation: so both come first, now and then. */
const cancelAfterMs = { min: 0, max: 60 };

export const cancelVersusCallback = defineScenario({
  title: 'cancel versus callback',
  story:
    'Paid at the channel and cancelled in the shop within 60 ms, on different nodes; every ' +
    'third payment is told only after the cancellation was confirmed.',
  laws: cancelLaws,
  tables: paymentWalls,
  contenders: {
    turngate: right,
    'read-then-write': readThenWrite,
    'late-money-dropped': lateMoneyDropped,
  },
  /** Tells which orders were cancelled in the customers' eyes. */
  async storm(stage: ScenarioStage<CancelVerbs>) {
    const floor = new ShopFloor(stage.store);
    const orders = await floor.openOrders(stage.quick ? 15 : 24);
    const cancelled = new Set<string>();
    await Promise.all(
      orders.map(async (orderNo, i) => {
        const payment = await floor.payAtChannel(orderNo);
        const cancel = async (waitMs: number): Promise<void> => {
          await sleep(waitMs);
          const reply = await stage.askUntilSettled({
            verb: 'cancel',
            input: { orderNo },
            node: i,
          });
          if (reply.kind === 'done') cancelled.add(orderNo);
        };
        const { min, max } = cancelAfterMs;
        const cancelling = cancel(i % 3 === 0 ? 0 : stage.chance.between(min, max));
        if (i % 3 === 0) await cancelling;
        const input = {
          ...payment,
          eventId: `paid/${payment.paymentNo}`,
          status: 'SUCCESS',
        } as const;
        await stage.askUntilSettled({ verb: 'callback', input, node: i + 1 });
        await cancelling;
      }),
    );
    return cancelled;
  },
  async audit(sql, cancelled) {
    const { rows } = await sql.query(
      `SELECT o.order_no AS order_no, o.status AS status,
         EXISTS (SELECT 1 FROM shop_payment p WHERE p.order_no = o.order_no) AS booked,
         EXISTS (SELECT 1 FROM shop_refund r WHERE r.order_no = o.order_no) AS sent_back
       FROM shop_order o`,
      [],
    );
    const inBoth = rows.filter(
      ({ order_no, status, booked, sent_back }) =>
        booked && !sent_back && (status === 'CANCELLED' || cancelled.has(String(order_no))),
    );
    const kept = rows.filter(({ booked, sent_back }) => !booked && !sent_back);
    return { paidAndCancelled: inBoth.length, kept: kept.length };
  },
});
