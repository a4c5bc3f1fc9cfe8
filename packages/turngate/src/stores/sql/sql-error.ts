/**
 * What a database error means, dug out of whatever wraps it. By code, never by class (two copies of a
 * driver) and never by text (servers speak many languages).
 */
import { errorChain } from '../../core/error-chain.ts';
import { TurngateError } from '../../core/errors.ts';

export { errorChain };

/** The five-character SQLSTATE somewhere in the chain. */
export function sqlState(error: unknown): string | undefined {
  for (const { code, originalCode } of errorChain(error)) {
    if (typeof code === 'string' && isSqlState(code)) return code;
    if (typeof originalCode === 'string' && isSqlState(originalCode)) return originalCode; // Prisma.
  }
  return undefined;
}

/** Five characters with a digit, but not Prisma's own: P2002 looks like one; PL/pgSQL's are P0…. */
function isSqlState(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code) && /\d/.test(code) && !/^P[1-9]/.test(code);
}

const socketCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  // postgres.js
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
]);
// node-postgres raises these without a code.
const lostConnection =
  /^(Connection terminated|Client has encountered a connection error|timeout e|Query read timeout|Client was closed)/;

// 57P01…05: shut down, crashed, starting, dropped, idle. 25P03, 25P04: idle or too long in transaction.
const endedSession = /^(08|57P0[1-5]|25P0[34])/;

/** Did the connection, not the statement, fail? Then nothing is known but what was sent before. */
export function isConnectionLost(error: unknown): boolean {
  for (const { code, message } of errorChain(error)) {
    if (typeof code === 'string') {
      if (socketCodes.has(code) || endedSession.test(code)) return true;
    } else if (typeof message === 'string' && lostConnection.test(message)) return true;
  }
  return false;
}

/** The database ended the transaction; only the whole of it may be tried again. */
export function conflictError(cause: unknown): TurngateError {
  const message = 'the database needs the whole transaction rolled back and run again';
  return new TurngateError('TRANSACTION_CONFLICT', message, { cause });
}

/** STORE_UNAVAILABLE: the database cannot be reached or is out of service; `why` is its own word. */
export function unavailableError(database: string, why: unknown, cause: unknown): TurngateError {
  const message = `${database} is not available (${why})`;
  return new TurngateError('STORE_UNAVAILABLE', message, { cause, retryAfterMs: 1_000 });
}

/** STORE_SCHEMA_MISSING: `text` is what the database says it does not know. */
export function schemaError(text: string, cause: unknown): TurngateError {
  const message = `Turngate's tables are missing or old: ${text}`;
  return new TurngateError('STORE_SCHEMA_MISSING', message, { cause });
}

/** For statements that are all ours: what `typed` does not know is the store failing. */
export function ourErrorOf(
  database: string,
  typed: (error: unknown) => TurngateError | undefined,
): (error: unknown) => TurngateError {
  return (error) => {
    const known = typed(error);
    if (known !== undefined) return known;
    const message = `${database} refused a statement of Turngate: ${(error as Error).message}`;
    return new TurngateError('STORE_UNAVAILABLE', message, { cause: error });
  };
}

/** Somebody ended the transaction that the work ran in; `how` lists what may have done it. */
export function endedTransactionError(how: string, cause: unknown): TurngateError {
  const message = `the transaction ended under the work: it was ${how}; the work is not protected`;
  return new TurngateError('TRANSACTION_REQUIRED', message, { outcome: 'unknown', cause });
}
