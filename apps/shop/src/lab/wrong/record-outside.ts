/**
 * WRONG: the record goes through the pool, not through the transaction of the sale. It stays when the
 * sale does not, and from then on it tells every repeat of a payment that never was.
 */
import type { Pool } from 'pg';
import { type Answer, type Payer, type PayRequest, refusalOf, type Trial } from '../payment.ts';
import { guardedSale, inTransaction } from './statements.ts';

export function recordOutside(pool: Pool): Payer {
  return { pay: (request, trial) => pay(pool, request, trial).catch(refusalOf) };
}

async function pay(pool: Pool, request: PayRequest, trial: Trial): Promise<Answer> {
  const { rowCount } = await pool.query(
    "INSERT INTO lab_record (request_key, state) VALUES ($1, 'done') ON CONFLICT DO NOTHING",
    [request.requestKey],
  );
  if (rowCount === 0) return { kind: 'already' };
  const answer = await inTransaction(pool, async (tx) => {
    const sold = await guardedSale(tx, request, trial);
    await trial.at('before-commit');
    return sold;
  });
  await trial.at('after-commit');
  return answer;
}
