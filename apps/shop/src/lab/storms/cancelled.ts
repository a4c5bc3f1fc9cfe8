/** Orders cancelled before their payment comes, and while it runs. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Storm, slowWorkMs } from './storm.ts';

// In the middle of the work, as far as can be from both of its ends.
const cancelAfterMs = slowWorkMs / 2;

export const cancelled: Storm = {
  title: 'cancelled, paid',
  story:
    'Half of the orders are cancelled before the payment arrives, half in the middle of it; the ' +
    'customer presses "pay" once more afterwards.',
  async run(stage) {
    const orders = await stage.openOrders(stage.quick ? 4 : 8);
    await Promise.all(
      orders.map(async (orderNo, i) => {
        const asking = { orderNo, requestKey: `${orderNo}/page`, workMs: slowWorkMs };
        if (i % 2 === 0) await stage.cancel(orderNo);
        const answered = stage.ask({ ...asking, server: i });
        await sleep(cancelAfterMs);
        if (i % 2 === 1) await stage.cancel(orderNo);
        await answered;
        await stage.ask({ ...asking, server: i + 1 });
      }),
    );
  },
};
