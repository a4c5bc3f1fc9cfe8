/**
 * What identifies a repeat: the idempotency key inside (scope, operation).
 *
 * The three parts stay three columns everywhere. They are never joined with a separator without
 * lengths, so ("a:b", "c") and ("a", "b:c") cannot meet.
 */
import { hash } from 'node:crypto';
import { show, TurngateError } from './errors.ts';
import { optionError } from './option.ts';

/** Identity of a record. */
export interface RecordId {
  readonly operation: string;
  readonly scope: string;
  readonly key: string;
}

/** The scope of callers that have none: one tenant, or keys that are unique by themselves. */
export const globalScope: string = '-';

const partBytesMax = 255;
const operationName = /^[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point.
const controlCharacters = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** Refuses operation names that are not lower-case words joined by `.`, `-` or `_`. */
export function checkOperationName(name: unknown): string {
  if (typeof name === 'string' && name.length <= 64 && operationName.test(name)) return name;
  throw optionError('operation name', '1 to 64 characters like "order.pay"', name);
}

/**
 * Checks an idempotency key and returns it unchanged. Numbers are refused rather than spelt:
 * 1 and "1" being two keys, or one, has cost money before.
 *
 * @throws IDEMPOTENCY_KEY_MISSING for undefined, null and "" ; IDEMPOTENCY_KEY_INVALID otherwise
 */
export function checkKey(key: unknown): string {
  if (key === undefined || key === null || key === '') {
    throw new TurngateError('IDEMPOTENCY_KEY_MISSING', 'the idempotency key is missing or empty');
  }
  const why = partProblem(key);
  if (why === undefined) return key as string;
  throw new TurngateError('IDEMPOTENCY_KEY_INVALID', `idempotency key must be ${why}`);
}

/** Checks a scope (tenant or principal) and returns it unchanged. */
export function checkScope(scope: unknown): string {
  const why = partProblem(scope);
  if (why === undefined) return scope as string;
  throw optionError('scope', why, scope);
}

/** Why a value can be no key and no scope, without the value; undefined when it can. */
export function partProblem(part: unknown): string | undefined {
  if (typeof part !== 'string') return `a string; got ${show(part)}`;
  if (part.trim() === '') return 'not blank';
  if (part !== part.trim()) return 'without white space at either end';
  if (controlCharacters.test(part)) return 'free of control characters';
  if (!part.isWellFormed()) return 'well-formed Unicode';
  const bytes = Buffer.byteLength(part, 'utf8');
  return bytes > partBytesMax ? `at most ${partBytesMax} bytes; got ${bytes}` : undefined;
}

/** One string per identity, for maps inside the process; collision-free by lengths. */
export function recordIdText({ operation, scope, key }: RecordId): string {
  return `${operation.length}:${operation}${scope.length}:${scope}${key}`;
}

/** Eight hex digits that stand for a key in logs, where the key itself must not appear. */
export function keyDigest(key: string): string {
  return hash('sha256', key, 'hex').slice(0, 8);
}

/** 43 characters that stand for an identity where a short, unique column is needed. */
export function recordIdDigest(id: RecordId): string {
  return hash('sha256', recordIdText(id), 'base64url');
}
