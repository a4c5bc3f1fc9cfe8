/** What the drivers share that send BEGIN and several statements at once themselves. */
import type { SqlAnswer } from '../../../contract/sql-session.ts';
import type { PostgresTransaction } from '../driver.ts';
import * as sql from '../statements.ts';

/** Sends BEGIN with the steps; a failure gives the connection back. */
export async function beginWith<Transaction extends PostgresTransaction<unknown>>(
  transaction: Transaction,
  steps: readonly sql.Step[],
): Promise<{ transaction: Transaction; answers: SqlAnswer[] }> {
  try {
    const lead = { statement: sql.begin, values: [] };
    const [, ...answers] = await transaction.session.batch([lead, ...steps]);
    return { transaction, answers };
  } catch (error) {
    await transaction.rollback();
    throw error;
  }
}

/** All results, or the first error in order, when all have been answered. */
export async function settleAll(calls: readonly Promise<SqlAnswer>[]): Promise<SqlAnswer[]> {
  const results = await Promise.allSettled(calls);
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason as Error;
    return result.value;
  });
}
