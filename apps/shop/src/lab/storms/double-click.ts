/** Two clicks, 200 ms apart, while the payment takes longer than that. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from '../stage.ts';
import { type Storm, slowWorkMs } from './storm.ts';

const gapMs = 200;

export const doubleClick: Storm = {
  title: 'double click',
  story: 'Two clicks on "pay", 200 ms apart; the key was made with the page, so both carry it.',
  run: (stage) => clicks(stage, () => 'page'),
};

export const doubleClickNewKey: Storm = {
  title: 'double click, new key',
  story: 'The same two clicks; the key is made in the click handler, so each has its own.',
  alongside: true,
  run: (stage) => clicks(stage, (click) => `click-${click}`),
};

async function clicks(stage: Stage, keyOf: (click: number) => string): Promise<void> {
  const orders = await stage.openOrders(stage.quick ? 4 : 6);
  const click = async (orderNo: string, server: number, number: number): Promise<void> => {
    await sleep(number * gapMs);
    const requestKey = `${orderNo}/${keyOf(number)}`;
    await stage.ask({ orderNo, requestKey, server: server + number, workMs: slowWorkMs });
  };
  await Promise.all(orders.flatMap((orderNo, i) => [click(orderNo, i, 0), click(orderNo, i, 1)]));
}
