/** What submit tokens are, wherever they are kept: their form, their name at rest, their errors. */
import { TurngateError } from '../core/errors.ts';
import { optionError } from '../core/option.ts';
import { checkOperationName, checkScope, recordIdDigest } from '../core/record-id.ts';

/** What a token is good for: one operation, by one subject. */
export interface TokenPurpose {
  /** What may be done with it, like `order.create`. */
  readonly operation: string;
  /** Who may do it: a user or a session, at most 255 bytes. From the login, never from the form. */
  readonly subject: string;
}

/** A token as it came back from a client, and what it is to be used for. */
export interface GivenToken extends TokenPurpose {
  readonly token: string;
}

/** A token for a form. It is told once and kept nowhere but with the client. */
export interface IssuedToken {
  /** 128 random bits in 22 characters that need no quoting in headers, URLs and forms. */
  readonly token: string;
  /** Until when it may be spent, by the store's clock. */
  readonly expiresAt: Date;
}

const minuteMs = 60_000;
const dayMs = 86_400_000;
export const ttlRange = { min: 1_000, max: 7 * dayMs, fallback: 30 * minuteMs };
export const memoryRange = { min: 1_000, max: 3_650 * dayMs, fallback: dayMs };

/** @throws OPTION_INVALID */
export function checkPurpose({ operation, subject }: TokenPurpose): TokenPurpose {
  checkOperationName(operation);
  try {
    checkScope(subject);
  } catch {
    throw optionError('subject', 'a name of 1 to 255 bytes without control characters', subject);
  }
  return { operation, subject };
}

/**
 * The name under which a token is kept: a digest of token, operation and subject. The token itself
 * cannot be had from it, and a token of another subject or operation has another name. It is also a
 * good idempotency key for the work that spends the token.
 *
 * @throws SUBMIT_TOKEN_INVALID when it does not have a token's form, OPTION_INVALID
 */
export function submitTokenDigest(given: GivenToken): string {
  const { operation, subject } = checkPurpose(given);
  const { token } = given;
  if (typeof token !== 'string' || !/^[A-Za-z0-9_-]{22}$/.test(token)) throw invalidToken();
  return recordIdDigest({ operation, scope: subject, key: token });
}

/** One error for all that is wrong with a token: which it was would help whoever is guessing. */
export function invalidToken(): TurngateError {
  return new TurngateError(
    'SUBMIT_TOKEN_INVALID',
    'the submit token is unknown, expired, or of another user or operation',
  );
}

/** @param outcome `unknown` while whoever spent it has not said that the work is done */
export function repeatedSubmit(spentMs: number, outcome: 'applied' | 'unknown'): TurngateError {
  return new TurngateError('REPEATED_SUBMIT', 'the submit token was spent before', {
    firstProcessedAt: new Date(spentMs),
    outcome,
  });
}
