/** WRONG: remembers the steps that are done, after they are done; one that had begun is neither known nor undone. */
import type { SqlDatabase, SqlSession } from 'turngate/contract';
import { ShopError } from '../../../trade/shop-error.ts';
import { Refused } from '../../payment.ts';
import {
  atChannel,
  book,
  couponBack,
  type Parcel,
  parcelOf,
  restock,
  settle,
  tell,
} from './bare-steps.ts';
import { LabChannel } from './lab-channel.ts';
import type { ReturnContender, ReturnPoint } from './terms.ts';

export const stepTables: readonly string[] = [
  'CREATE TABLE lab_return_step (order_no text, step text, PRIMARY KEY (order_no, step))',
];

interface Step {
  /** Its effect is there, its record not yet. */
  readonly point: ReturnPoint;
  readonly do: () => Promise<void>;
  readonly undo?: () => Promise<void>;
}

export const doneOnly: ReturnContender = {
  title: 'done only',
  idea: 'Writes each step down once it is done, goes on after the last, undoes what is written down.',
  breaks: ['twice', 'held'],
  why: 'between a step and its record the node dies: the step is done again, or never undone',
  open: ({ store: { database } }) => ({
    async giveBack(wish, trial) {
      const channel = new LabChannel(database, () => trial.at('asked'));
      const parcel = await database.transaction((sql) => parcelOf(sql, wish));
      const done = await readDone(database, wish.orderNo);
      for (const step of stepsOf(database, channel, parcel)) {
        if (done.has(step.point)) continue;
        try {
          await step.do();
        } catch (error) {
          if (!(error instanceof Refused || error instanceof ShopError)) throw error;
          for (const { point, undo } of stepsOf(database, channel, parcel).reverse()) {
            if (done.has(point)) await undo?.();
          }
          throw error;
        }
        await trial.at(step.point);
        await database.query('INSERT INTO lab_return_step (order_no, step) VALUES ($1, $2)', [
          wish.orderNo,
          step.point,
        ]);
        done.add(step.point);
      }
    },
  }),
};

function stepsOf(database: SqlDatabase, channel: LabChannel, parcel: Parcel): Step[] {
  const alone = (work: (sql: SqlSession, parcel: Parcel) => Promise<void>) => (): Promise<void> =>
    database.transaction((sql) => work(sql, parcel));
  return [
    { point: 'booked', do: alone(book), undo: alone((sql) => settle(sql, parcel, 'FAILED')) },
    {
      point: 'refunded',
      async do() {
        if (!(await channel.refund(atChannel(parcel)))) throw new Refused('REFUND_REFUSED');
        await alone((sql) => settle(sql, parcel, 'SUCCEEDED'))();
      },
    },
    { point: 'restocked', do: alone(restock) },
    { point: 'coupon-back', do: alone(couponBack) },
    { point: 'told', do: alone(tell) },
  ];
}

async function readDone(database: SqlDatabase, orderNo: string): Promise<Set<string>> {
  const text = 'SELECT step FROM lab_return_step WHERE order_no = $1';
  const { rows } = await database.query(text, [orderNo]);
  return new Set(rows.map(({ step }) => String(step)));
}
