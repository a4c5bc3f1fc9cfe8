/**
 * WRONG: a faultless record per request key, and no look at the order. It answers "have I seen this
 * request?", never "is this order already paid, or cancelled?".
 */
import type { Pool } from 'pg';
import { type Answer, type Payer, type PayRequest, refusalOf, type Trial } from '../payment.ts';
import { insertCharge, inTransaction, overwriteState, takeUnit } from './statements.ts';

export function noStateCheck(pool: Pool): Payer {
  return { pay: (request, trial) => pay(pool, request, trial).catch(refusalOf) };
}

async function pay(pool: Pool, request: PayRequest, trial: Trial): Promise<Answer> {
  const answer = await inTransaction(pool, async (tx): Promise<Answer> => {
    // Waits for a running request with this key, and knows its end.
    const { rowCount } = await tx.query(
      "INSERT INTO lab_record (request_key, state) VALUES ($1, 'done') ON CONFLICT DO NOTHING",
      [request.requestKey],
    );
    if (rowCount === 0) return { kind: 'already' };
    await trial.work();
    await insertCharge(tx, request);
    await trial.at('after-charge');
    await overwriteState(tx, request.orderNo);
    await takeUnit(tx, request.orderNo);
    await trial.at('before-commit');
    return { kind: 'paid' };
  });
  await trial.at('after-commit');
  return answer;
}
