/** PostgreSQL's SQLSTATEs in the words of the contract. */
import { isTurngateError, TurngateError } from '../../core/errors.ts';
import { isConnectionLost, sqlState } from '../sql/sql-error.ts';

/** Rolled back by the database for its own reasons: serialization failure, deadlock. */
export function isConflict(error: unknown): boolean {
  const state = sqlState(error);
  return state === '40001' || state === '40P01';
}

/**
 * The typed error for trouble with our own statements; undefined when it is not the store's trouble
 * (the handler's own error, which goes to the caller as it is).
 */
export function storeError(error: unknown): TurngateError | undefined {
  if (isTurngateError(error)) return error;
  const state = sqlState(error);
  if (isConnectionLost(error) || isOutOfService(state)) {
    const message = `PostgreSQL is not available (${state ?? (error as Error).message})`;
    return new TurngateError('STORE_UNAVAILABLE', message, { cause: error, retryAfterMs: 1_000 });
  }
  const text = String((error as Error)?.message);
  if ((state === '42P01' || state === '42703') && text.includes('turngate_')) {
    return new TurngateError(
      'STORE_SCHEMA_MISSING',
      `Turngate's tables are missing or old: ${text}`,
      {
        cause: error,
      },
    );
  }
  if (state === '25P02') {
    const message = 'a statement inside the transaction failed and its error was swallowed';
    return new TurngateError('TRANSACTION_ROLLED_BACK', message, { cause: error });
  }
  return undefined;
}

/** Like {@link storeError}, for statements that are all ours: everything else is the store failing. */
export function ourStoreError(error: unknown): TurngateError {
  const known = storeError(error);
  if (known !== undefined) return known;
  const message = `PostgreSQL refused a statement of Turngate: ${(error as Error).message}`;
  return new TurngateError('STORE_UNAVAILABLE', message, { cause: error });
}

/** Out of connections, memory or disk; starting up; read-only after a failover. */
function isOutOfService(state: string | undefined): boolean {
  return state !== undefined && (state.startsWith('53') || state === '25006');
}
