/** PostgreSQL's SQLSTATEs in the words of the contract. */
import { isTurngateError, TurngateError } from '../../core/errors.ts';
import {
  isConnectionLost,
  ourErrorOf,
  schemaError,
  sqlState,
  unavailableError,
} from '../sql/sql-error.ts';

/** Rolled back by the database for its own reasons: serialization failure, deadlock. */
export function isConflict(error: unknown): boolean {
  const state = sqlState(error);
  return state === '40001' || state === '40P01';
}

/**
 * The typed error of a database error: STORE_UNAVAILABLE when PostgreSQL cannot be reached or is out
 * of service. Undefined when it is not the store's trouble but the statement's own, which goes to
 * the caller as it is.
 */
export function postgresError(error: unknown): TurngateError | undefined {
  if (isTurngateError(error)) return error;
  const state = sqlState(error);
  if (isConnectionLost(error) || isOutOfService(state)) {
    return unavailableError('PostgreSQL', state ?? (error as Error).message, error);
  }
  const text = String((error as Error)?.message);
  if ((state === '42P01' || state === '42703') && text.includes('turngate_')) {
    return schemaError(text, error);
  }
  if (state === '25P01') {
    const message = 'the transaction handle is not inside an open transaction';
    return new TurngateError('TRANSACTION_REQUIRED', message, { cause: error });
  }
  if (state === '25P02') {
    const message = 'a statement inside the transaction failed and its error was swallowed';
    return new TurngateError('TRANSACTION_ROLLED_BACK', message, { cause: error });
  }
  return undefined;
}

/**
 * What the caller gets when work threw. With our connection alive, a lost connection is the handler's
 * own, to somebody else's service, and stays as it is.
 */
export function workError(error: unknown, connectionAlive: boolean): unknown {
  if (connectionAlive && isConnectionLost(error)) return error;
  return postgresError(error) ?? error;
}

/** Like {@link postgresError}, for statements that are all ours: everything else is the store failing. */
export const ourStoreError = ourErrorOf('PostgreSQL', postgresError);

/** Out of connections, memory or disk; starting up; read-only after a failover. */
function isOutOfService(state: string | undefined): boolean {
  return state !== undefined && (state.startsWith('53') || state === '25006');
}
