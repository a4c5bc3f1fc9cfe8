/** Transactions that the database rolls back for its own reasons are run again. */
import { isSqlConflict } from '../core/sql-conflict.ts';
import { systemRuntime } from '../runtime/runtime.ts';
import { backoffMs, sleep } from '../runtime/wait.ts';

const conflictsMax = 20;
const conflictRange = { baseMs: 2, capMs: 200 };

/** Runs a whole transaction again after a deadlock or a serialization failure, a bounded number of times. */
export async function withoutConflicts<T>(transact: () => Promise<T>): Promise<T> {
  for (let conflicts = 0; ; conflicts++) {
    try {
      return await transact();
    } catch (error) {
      if (conflicts >= conflictsMax || !isSqlConflict(error)) throw error;
    }
    await sleep(systemRuntime, backoffMs(systemRuntime, conflicts, conflictRange));
  }
}
