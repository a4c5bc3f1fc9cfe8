/** RIGHT: the shop's own returns; whoever is left goes on with what a dead node had begun. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { SqlDatabase } from 'turngate/contract';
import { returnOperations } from '../../../trade/returns.ts';
import type { Tx } from '../../../trade/store.ts';
import type { Trial } from '../../scenario.ts';
import { LabChannel } from './lab-channel.ts';
import type { ReturnContender, ReturnPoint } from './terms.ts';

const leaseMs = 500;
/** Seldom enough that a return is led by whom it was asked of, who dies where he is told. */
const recoverEveryMs = 1_000;

/** Each step of the saga ends with a transaction of its own. */
const afterTransactions: readonly ReturnPoint[] = ['refunded', 'restocked', 'coupon-back', 'told'];

export const right: ReturnContender = {
  title: 'turngate',
  idea: 'The shop’s returns: a saga begun with the acceptance, its steps recorded, its pivot the refund.',
  breaks: [],
  why: 'after its lease another node goes on after the recorded steps, and undoes what had only begun',
  open({ store, onEnd }) {
    const running = new AsyncLocalStorage<{ readonly trial: Trial; transactions: number }>();
    const database: SqlDatabase<Tx> = {
      ...store.database,
      async transaction(work, ends) {
        const value = await store.database.transaction(work, ends);
        const run = running.getStore();
        const point = run && afterTransactions[run.transactions++];
        if (point !== undefined) await run?.trial.at(point);
        return value;
      },
    };
    const channel = new LabChannel(
      store.database,
      async () => await running.getStore()?.trial.at('asked'),
    );
    const { accept, proceed } = returnOperations({ ...store, database }, channel, { leaseMs });
    const recovery = store.gate.recover({ everyMs: recoverEveryMs });
    onEnd(() => recovery.stop());
    return {
      async giveBack(wish, trial) {
        await accept(wish);
        await trial.at('booked');
        await running.run({ trial, transactions: 0 }, () => proceed(wish));
      },
    };
  },
};
