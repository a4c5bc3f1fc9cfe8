/**
 * WRONG: a lock taken for idempotency. It keeps repeats apart in time and then lets each of them in,
 * because nobody asks what has been done already.
 */
import type { Pool } from 'pg';
import { type Answer, type Payer, type PayRequest, refusalOf, type Trial } from '../payment.ts';
import { type LeaseTiming, withLease } from './lease-lock.ts';
import {
  insertCharge,
  inTransaction,
  overwriteState,
  overwriteStock,
  readOrder,
  readStock,
} from './statements.ts';

// Longer than any work in the lab: this one shall not fail for its lease.
const timing: LeaseTiming = { leaseMs: 800, waitMs: 1_000 };

export function lockOnly(pool: Pool): Payer {
  return { pay: (request, trial) => pay(pool, request, trial).catch(refusalOf) };
}

async function pay(pool: Pool, request: PayRequest, trial: Trial): Promise<Answer> {
  return await withLease(pool, `pay:${request.orderNo}`, timing, async () => {
    await inTransaction(pool, async (tx) => {
      const { skuId } = await readOrder(tx, request.orderNo);
      const stock = await readStock(tx, skuId);
      await trial.work();
      await insertCharge(tx, request);
      await trial.at('after-charge');
      await overwriteState(tx, request.orderNo);
      await overwriteStock(tx, skuId, stock - 1);
      await trial.at('before-commit');
    });
    await trial.at('after-commit');
    return { kind: 'paid' };
  });
}
