/** What the drivers share that send BEGIN and several statements at once themselves. */
import type { PostgresTransaction, Row } from '../driver.ts';
import * as sql from '../statements.ts';

/** Sends BEGIN with the steps; a failure gives the connection back. */
export async function beginWith<Transaction extends PostgresTransaction<unknown>>(
  transaction: Transaction,
  steps: readonly sql.Step[],
): Promise<{ transaction: Transaction; rows: Row[][] }> {
  try {
    const lead = { statement: sql.begin, values: [] };
    const [, ...rows] = await transaction.session.batch([lead, ...steps]);
    return { transaction, rows };
  } catch (error) {
    await transaction.rollback();
    throw error;
  }
}

/** All results, or the first error in order, when all have been answered. */
export async function settleAll(calls: readonly Promise<Row[]>[]): Promise<Row[][]> {
  const results = await Promise.allSettled(calls);
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason as Error;
    return result.value;
  });
}
