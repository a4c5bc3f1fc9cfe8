/** Fifty equal requests in the same moment, over all servers. */
import { type Storm, slowWorkMs } from './storm.ts';

const requests = 50;

export const fiftyAtOnce: Storm = {
  title: '50 at once',
  story: 'One payment arrives 50 times in the same moment with the same key (a looping client).',
  async run(stage) {
    const orders = await stage.openOrders(stage.quick ? 1 : 2);
    for (const orderNo of orders) {
      const requestKey = `${orderNo}/loop`;
      const asking = { orderNo, requestKey, workMs: slowWorkMs };
      await Promise.all(
        Array.from({ length: requests }, (_, server) => stage.ask({ ...asking, server })),
      );
    }
  },
};
