/** SQLite's result codes in the words of the contract, as better-sqlite3, libsql or `node:sqlite` put them. */
import { isTurngateError, type TurngateError } from '../../core/errors.ts';
import {
  endedTransactionError,
  errorChain,
  ourErrorOf,
  schemaError,
  unavailableError,
} from '../sql/sql-error.ts';

// Extended codes of `node:sqlite` carry the primary one in their low byte.
const names: Readonly<Record<number, string>> = {
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  19: 'SQLITE_CONSTRAINT',
  26: 'SQLITE_NOTADB',
  517: 'SQLITE_BUSY_SNAPSHOT',
};

/** The result code somewhere in the chain, by its name. */
export function sqliteCode(error: unknown): string | undefined {
  for (const { code, errcode } of errorChain(error)) {
    if (typeof code === 'string' && code.startsWith('SQLITE_')) return code;
    if (typeof errcode === 'number') return names[errcode] ?? names[errcode & 0xff];
  }
  return undefined;
}

/** Another connection has the lock: the statement did nothing, and may be sent again. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === 'SQLITE_BUSY' || code === 'SQLITE_BUSY_RECOVERY';
}

/**
 * The transaction has read what others have changed since, or waited in vain: only the whole of it may
 * be tried again. Waiting does not help.
 */
export function isConflict(error: unknown): boolean {
  const code = sqliteCode(error);
  return code?.startsWith('SQLITE_BUSY') === true || code?.startsWith('SQLITE_LOCKED') === true;
}

/** The savepoint that proves our transaction is still the one we opened is not there any more. */
export function isSavepointGone(error: unknown): boolean {
  for (const { message } of errorChain(error)) {
    // SQLite is not translated, and has no code of its own for this.
    if (typeof message === 'string' && message.includes('no such savepoint')) return true;
  }
  return false;
}

const outOfService = /^SQLITE_(BUSY|LOCKED|READONLY|IOERR|CORRUPT|FULL|CANTOPEN|NOTADB|PROTOCOL)/;

/**
 * The typed error of a database error: STORE_UNAVAILABLE when the file is busy, full or broken.
 * Undefined when it is not the store's trouble but the statement's own, which goes to the caller as
 * it is.
 */
export function sqliteError(error: unknown): TurngateError | undefined {
  if (isTurngateError(error)) return error;
  const code = sqliteCode(error);
  const message = String((error as Error | undefined)?.message);
  if ((code !== undefined && outOfService.test(code)) || /database.* is not open/.test(message)) {
    return unavailableError('SQLite', code ?? message, error);
  }
  if (/no such (table|column): turngate_|turngate_.* has no column/.test(message)) {
    return schemaError(message, error);
  }
  return undefined;
}

/** Like {@link sqliteError}, for statements that are all ours: everything else is the store failing. */
export const ourStoreError = ourErrorOf('SQLite', sqliteError);

/** Somebody ended the transaction that the work ran in. */
export function endedError(cause: unknown): TurngateError {
  return endedTransactionError('committed or rolled back', cause);
}
