/** The one kind of database error that is answered by running the transaction again. */
import { errorChain } from './error-chain.ts';

/**
 * Did the database end the transaction for its own reasons, deadlock or serialization failure? All of it
 * is rolled back then, and all of it may be run again. By code, for whoever does not know the dialect.
 */
export function isSqlConflict(error: unknown): boolean {
  for (const { code, errno } of errorChain(error)) {
    if (errno === 1213) return true;
    if (typeof code === 'string' && conflictCode.test(code)) return true;
  }
  return false;
}

const conflictCode = /^(40001|40P01|TRANSACTION_CONFLICT|SQLITE_(BUSY|LOCKED)\w*)$/;
