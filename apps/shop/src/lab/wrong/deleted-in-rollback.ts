/**
 * WRONG: claims the key first and, when the sale fails, deletes the claim so that a retry can come
 * in, but inside the transaction that is rolled back. The deletion is undone and the claim stays.
 */
import type { Pool, PoolClient } from 'pg';
import { type Answer, type Payer, type PayRequest, refusalOf, type Trial } from '../payment.ts';
import { guardedSale } from './statements.ts';

export function deletedInRollback(pool: Pool): Payer {
  return { pay: (request, trial) => pay(pool, request, trial).catch(refusalOf) };
}

async function pay(pool: Pool, request: PayRequest, trial: Trial): Promise<Answer> {
  const claimed = await pool.query(
    "INSERT INTO lab_record (request_key, state) VALUES ($1, 'running') ON CONFLICT DO NOTHING",
    [request.requestKey],
  );
  if (claimed.rowCount === 0) return await answerOfRecord(pool, request.requestKey);
  const tx = await pool.connect();
  try {
    const answer = await sell(tx, request, trial);
    await trial.at('after-commit');
    return answer;
  } finally {
    tx.release();
  }
}

async function sell(tx: PoolClient, request: PayRequest, trial: Trial): Promise<Answer> {
  await tx.query('BEGIN');
  try {
    const answer = await guardedSale(tx, request, trial);
    await tx.query("UPDATE lab_record SET state = 'done' WHERE request_key = $1", [
      request.requestKey,
    ]);
    await trial.at('before-commit');
    await tx.query('COMMIT');
    return answer;
  } catch (error) {
    await tx.query('DELETE FROM lab_record WHERE request_key = $1', [request.requestKey]);
    await tx.query('ROLLBACK');
    throw error;
  }
}

async function answerOfRecord(pool: Pool, requestKey: string): Promise<Answer> {
  const { rows } = await pool.query('SELECT state FROM lab_record WHERE request_key = $1', [
    requestKey,
  ]);
  const done = (rows as { state: string }[])[0]?.state === 'done';
  return done ? { kind: 'already' } : { kind: 'failed', why: 'this key is in progress' };
}
