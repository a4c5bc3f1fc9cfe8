/** Many buyers, half as many units. */
import type { Storm } from './storm.ts';

const buyers = 200;
const units = 100;
const workMs = { min: 20, max: 50 };

export const flashSale: Storm = {
  title: '200 for 100',
  story: '200 buyers pay at once for 100 units; who hears "sold out" presses once more.',
  async run(stage) {
    const orders = await stage.openSale(buyers, units);
    await Promise.all(
      orders.map(async (orderNo, server) => {
        const requestKey = `${orderNo}/page`;
        const asking = {
          orderNo,
          requestKey,
          workMs: stage.chance.between(workMs.min, workMs.max),
        };
        const answer = await stage.ask({ ...asking, server });
        if (answer?.kind === 'refused') await stage.ask({ ...asking, server: server + 1 });
      }),
    );
  },
};
