/** The first attempt fails after the charge; the client retries. */
import type { Storm } from './storm.ts';

const workMs = 25;
const patience = { triesMax: 5, pauseMs: () => 40 };

export const failingFirst: Storm = {
  title: 'failing first',
  story: 'The first attempt throws after the charge was written; the client retries with its key.',
  async run(stage) {
    const orders = await stage.openOrders(stage.quick ? 4 : 10);
    await Promise.all(
      orders.map((orderNo, i) =>
        stage.askUntilSettled(
          (attempt) => ({
            orderNo,
            requestKey: `${orderNo}/intent`,
            server: i + attempt,
            workMs,
            ...(attempt === 0 && { stop: { point: 'after-charge', action: 'throw' } }),
          }),
          patience,
        ),
      ),
    );
  },
};
