/** Looking at typed errors in tests. */
import { expect } from 'vitest';
import type { ErrorCode } from '../../src/core/errors.ts';

/** Expects a rejection with this code and gives the error. */
export async function rejection(
  call: Promise<unknown>,
  code?: ErrorCode,
): Promise<Error & Record<string, unknown>> {
  const error = await call.then(
    (value) => {
      throw new Error(`expected a rejection, got ${JSON.stringify(value)}`);
    },
    (reason: unknown) => reason as Error & Record<string, unknown>,
  );
  if (code !== undefined) expect(error).toMatchObject({ name: 'TurngateError', code });
  return error;
}
