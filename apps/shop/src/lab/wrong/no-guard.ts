/** WRONG: reads, works, writes; no lock, no record, no transaction. */
import type { Pool } from 'pg';
import { type Answer, type Payer, type PayRequest, refusalOf, type Trial } from '../payment.ts';
import {
  answerByState,
  insertCharge,
  overwriteState,
  overwriteStock,
  readOrder,
  readStock,
} from './statements.ts';

export function noGuard(pool: Pool): Payer {
  return { pay: (request, trial) => pay(pool, request, trial).catch(refusalOf) };
}

async function pay(pool: Pool, request: PayRequest, trial: Trial): Promise<Answer> {
  const order = await readOrder(pool, request.orderNo);
  const answer = answerByState(order);
  if (answer !== undefined) return answer;
  const stock = await readStock(pool, order.skuId);
  await trial.work();
  await insertCharge(pool, request);
  await trial.at('after-charge');
  // There is no commit: each statement is its own, and this is the gap between two of them.
  await trial.at('before-commit');
  await overwriteState(pool, request.orderNo);
  await overwriteStock(pool, order.skuId, stock - 1);
  await trial.at('after-commit');
  return { kind: 'paid' };
}
