/**
 * WRONG: a lock, and the state is read under it, but the lease is shorter than slow work and nobody
 * renews it or checks a fence. Also, only those who take the lock are kept out by it.
 */
import type { Pool } from 'pg';
import { type Answer, type Payer, type PayRequest, refusalOf, type Trial } from '../payment.ts';
import { type LeaseTiming, withLease } from './lease-lock.ts';
import {
  answerByState,
  insertCharge,
  inTransaction,
  overwriteState,
  overwriteStock,
  readOrder,
  readStock,
} from './statements.ts';

const timing: LeaseTiming = { leaseMs: 120, waitMs: 1_200 };

export function leaseWithoutRenewal(pool: Pool): Payer {
  return { pay: (request, trial) => pay(pool, request, trial).catch(refusalOf) };
}

async function pay(pool: Pool, request: PayRequest, trial: Trial): Promise<Answer> {
  return await withLease(pool, `pay:${request.orderNo}`, timing, async () => {
    const answer = await inTransaction(pool, async (tx): Promise<Answer> => {
      const order = await readOrder(tx, request.orderNo);
      const known = answerByState(order);
      if (known !== undefined) return known;
      const stock = await readStock(tx, order.skuId);
      await trial.work();
      await insertCharge(tx, request);
      await trial.at('after-charge');
      await overwriteState(tx, request.orderNo);
      await overwriteStock(tx, order.skuId, stock - 1);
      await trial.at('before-commit');
      return { kind: 'paid' };
    });
    await trial.at('after-commit');
    return answer;
  });
}
