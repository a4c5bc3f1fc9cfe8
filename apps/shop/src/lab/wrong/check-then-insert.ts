/** WRONG: looks for the record, works, then inserts it; no unique index makes the second one fail. */
import type { Pool } from 'pg';
import { type Answer, type Payer, type PayRequest, refusalOf, type Trial } from '../payment.ts';
import {
  answerByState,
  insertCharge,
  inTransaction,
  overwriteState,
  readOrder,
  takeUnit,
} from './statements.ts';

export function checkThenInsert(pool: Pool): Payer {
  return { pay: (request, trial) => pay(pool, request, trial).catch(refusalOf) };
}

async function pay(pool: Pool, request: PayRequest, trial: Trial): Promise<Answer> {
  const { requestKey, orderNo } = request;
  const found = await pool.query('SELECT 1 FROM lab_record_loose WHERE request_key = $1', [
    requestKey,
  ]);
  if (found.rowCount !== 0) return { kind: 'already' };
  const answer = answerByState(await readOrder(pool, orderNo));
  if (answer !== undefined) return answer;
  await trial.work();
  await inTransaction(pool, async (tx) => {
    await tx.query("INSERT INTO lab_record_loose (request_key, state) VALUES ($1, 'done')", [
      requestKey,
    ]);
    await insertCharge(tx, request);
    await trial.at('after-charge');
    await overwriteState(tx, orderNo);
    await takeUnit(tx, orderNo);
    await trial.at('before-commit');
  });
  await trial.at('after-commit');
  return { kind: 'paid' };
}
