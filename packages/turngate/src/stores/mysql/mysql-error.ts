/** MySQL's and MariaDB's error numbers in the words of the contract. */
import { isTurngateError, type TurngateError } from '../../core/errors.ts';
import {
  endedTransactionError,
  errorChain,
  isConnectionLost,
  ourErrorOf,
  schemaError,
  unavailableError,
} from '../sql/sql-error.ts';

/** The server's error number somewhere in the chain; socket errors have negative ones. */
function errorNumber(error: unknown): number | undefined {
  for (const { errno } of errorChain(error)) {
    if (typeof errno === 'number' && errno > 0) return errno;
  }
  return undefined;
}

/** Deadlock. The server has rolled back the WHOLE transaction, and the session lives on without. */
export function isConflict(error: unknown): boolean {
  return errorNumber(error) === 1213;
}

/** A unique index refused the row. The transaction is as it was before the statement. */
export function isDuplicate(error: unknown): boolean {
  const errno = errorNumber(error);
  return errno === 1062 || errno === 1586;
}

/** Somebody else's uncommitted row: 1205 after waiting (MariaDB also for NOWAIT), 3572 for NOWAIT. */
export function isLocked(error: unknown): boolean {
  const errno = errorNumber(error);
  return errno === 1205 || errno === 3572;
}

/** The savepoint that proves our transaction is still the one we opened is not there any more. */
export function isSavepointGone(error: unknown): boolean {
  return errorNumber(error) === 1305;
}

// 1053 shutting down, 1927 connection killed, 1152 aborted, 2006 and 2013 gone, 4031 idle too long.
const lostNumbers = new Set([1053, 1152, 1927, 2006, 2013, 4031]);

/** Did the connection, not the statement, fail? Then nothing is known but what was sent before. */
export function isLinkLost(error: unknown): boolean {
  if (isConnectionLost(error)) return true;
  const errno = errorNumber(error);
  if (errno !== undefined) return lostNumbers.has(errno);
  for (const { code, fatal } of errorChain(error)) {
    if (fatal === true) return true;
    if (code === 'PROTOCOL_CONNECTION_LOST') return true;
  }
  return false;
}

// Out of connections, memory or disk; read-only after a failover; a node outside its cluster.
const outOfService = new Set([
  1021, 1037, 1038, 1040, 1041, 1047, 1114, 1129, 1203, 1226, 1290, 1792, 1836, 3100,
]);
// No such table, unknown column.
const schemaNumbers = new Set([1146, 1054]);

/**
 * The typed error of a database error: STORE_UNAVAILABLE when the database cannot be reached or is
 * out of service. Undefined when it is not the store's trouble but the statement's own, which goes
 * to the caller as it is.
 */
export function mysqlError(error: unknown): TurngateError | undefined {
  if (isTurngateError(error)) return error;
  const errno = errorNumber(error);
  const message = String((error as Error | undefined)?.message);
  if (isLinkLost(error) || (errno !== undefined && outOfService.has(errno))) {
    return unavailableError('MySQL', errno ?? message, error);
  }
  if (errno !== undefined && schemaNumbers.has(errno) && message.includes('turngate_')) {
    return schemaError(message, error);
  }
  return undefined;
}

/**
 * What the caller gets when work threw. With our connection alive, a lost connection is the handler's
 * own, to somebody else's service, and stays as it is.
 */
export function workError(error: unknown, connectionAlive: boolean): unknown {
  if (connectionAlive && isLinkLost(error)) return error;
  return mysqlError(error) ?? error;
}

/** Like {@link mysqlError}, for statements that are all ours: everything else is the store failing. */
export const ourStoreError = ourErrorOf('MySQL', mysqlError);

/** Somebody ended the transaction that the work ran in. */
export function endedError(cause: unknown): TurngateError {
  const how =
    'committed, rolled back, ended by a schema change, or a deadlock inside it was swallowed';
  return endedTransactionError(how, cause);
}
