/** A transaction of ours on a handle: write lock first, and a proof at the end that it is still ours. */
import type { Runtime } from '../../runtime/runtime.ts';
import type { SqliteConnection } from './client.ts';
import { endedError, isBusy, isSavepointGone } from './sqlite-error.ts';
import * as sql from './statements.ts';

const savepoint = 'turngate';

/** How long others may be waited for. */
export interface Patience {
  readonly runtime: Runtime;
  readonly limitMs: number;
}

/** BEGIN IMMEDIATE; waits for other processes without blocking this one. */
export async function begin(
  connection: SqliteConnection,
  { runtime, limitMs }: Patience,
): Promise<void> {
  await connection.untilFree(runtime, limitMs, () => connection.db.exec(sql.begin));
  connection.db.exec(sql.mark(savepoint));
}

/**
 * COMMIT, if the transaction is still the one that was begun.
 *
 * @param undo the work's writes are dropped first
 * @param last statements sent before the COMMIT, after the proof
 * @throws TRANSACTION_REQUIRED when somebody ended it
 */
export async function commit(
  connection: SqliteConnection,
  { runtime, limitMs }: Patience,
  { undo, last }: { readonly undo: boolean; readonly last?: () => void },
): Promise<void> {
  const { db } = connection;
  try {
    if (undo) db.exec(sql.undo(savepoint));
    db.exec(sql.keep(savepoint));
  } catch (error) {
    throw isSavepointGone(error) ? endedError(error) : error;
  }
  last?.();
  try {
    db.exec(sql.commit);
  } catch (error) {
    // Readers of a file without WAL: the transaction stays open, and COMMIT may be sent again.
    if (!isBusy(error)) throw error;
    await connection.untilFree(runtime, limitMs, () => db.exec(sql.commit));
  }
}

/** Rolls back what is open. Never throws: some errors have rolled back already. */
export function rollBack({ db }: SqliteConnection): void {
  try {
    db.exec(sql.rollback);
  } catch {
    // No transaction any more.
  }
}
