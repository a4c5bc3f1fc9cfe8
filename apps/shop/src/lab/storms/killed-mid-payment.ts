/** kill -9 of a server with payments at an exact point, then a retry on another one. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Point } from '../payment.ts';
import type { Stage } from '../stage.ts';
import type { Storm } from './storm.ts';

const points: readonly Point[] = ['before-commit', 'after-commit'];
const workMs = 25;
const reachLimitMs = 5_000;
const victim = 0;
const survivor = 1;
/** Longer together than any lease of a lock that the dead server left behind. */
const patience = { triesMax: 6, pauseMs: () => 60 };

export const killedMidPayment: Storm = {
  title: 'kill -9, retry',
  story:
    'A server is killed with payments before their commit, and with payments committed but not ' +
    'answered; the clients retry with the same key on another server.',
  async run(stage) {
    const each = stage.quick ? 2 : 5;
    const orders = await stage.openOrders(each * points.length);
    for (const [i, point] of points.entries()) {
      await killAt(stage, point, orders.slice(i * each, (i + 1) * each));
    }
  },
};

async function killAt(stage: Stage, point: Point, orders: readonly string[]): Promise<void> {
  const asking = (orderNo: string) => ({ orderNo, requestKey: `${orderNo}/intent`, workMs });
  const attempts = orders.map((orderNo) => {
    let answered: Promise<unknown> = Promise.resolve();
    const reached = new Promise<void>((onReached) => {
      const stop = { point, action: 'hang' } as const;
      answered = stage.ask({ ...asking(orderNo), server: victim, stop, onReached });
    });
    return { reached, answered };
  });
  await withinLimit(Promise.all(attempts.map(({ reached }) => reached)), point);
  await stage.fleet.killAndReplace(victim);
  await Promise.all(attempts.map(({ answered }) => answered));
  await Promise.all(
    orders.map((orderNo) =>
      stage.askUntilSettled(() => ({ ...asking(orderNo), server: survivor }), patience),
    ),
  );
}

async function withinLimit(reached: Promise<unknown>, point: Point): Promise<void> {
  const done = new AbortController();
  const late = sleep(reachLimitMs, 'late', { signal: done.signal }).catch(() => 'done');
  const first = await Promise.race([reached, late]);
  done.abort();
  if (first === 'late') throw new Error(`not all payments came to the point "${point}"`);
}
