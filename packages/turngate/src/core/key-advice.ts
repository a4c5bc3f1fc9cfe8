/**
 * Keys that are none: what can be told from a key alone. A wrong key makes every guarantee void in
 * silence, so what is certain is refused, and the rest is warned of, with the reason.
 */
import { globalScope } from './record-id.ts';

/** What is wrong, or may be wrong, with a key. */
export interface KeyAdvice {
  /** `refuse`: certain, calls with it fail with IDEMPOTENCY_KEY_INVALID. `warn`: it may be right. */
  readonly verdict: 'refuse' | 'warn';
  readonly kind: 'user-id' | 'timestamp' | 'hash' | 'short-counter';
  readonly reason: string;
}

const reasons = {
  'user-id':
    'the key is the scope itself: a second intent of this user would be taken for a repeat of the first. Where once per user is meant, leave the scope out',
  timestamp:
    'the key looks like a point in time: a retry that takes the time again is a new intent, and two intents of one moment are one',
  hash: 'the key looks like a hash alone: of a raw body it changes with the order of members and white space, and two intents with the same body are one. A hash of a business number is fine',
  'short-counter':
    'the key is a short number: counters that start again, or are counted per device or day, repeat other intents. Put what they are counted in into the key or the scope',
} as const satisfies Record<KeyAdvice['kind'], string>;

/**
 * What can be said about a key before it is used; undefined when nothing. For tests, for code review,
 * and for keys that come from elsewhere. Operations refuse what is certain by themselves, and tell the
 * rest once per operation as the event `key-advice` of family `idempotency`.
 *
 * Not promised: that a key without advice is a good one. Only its maker knows what it stands for.
 *
 * @param about `scope`: the scope it is used in, as the operation declares it
 */
export function adviseKey(
  key: string,
  about: { readonly scope?: string; readonly operation?: string } = {},
): KeyAdvice | undefined {
  if (isScopeItself(key, about.scope ?? globalScope)) return adviceOf('refuse', 'user-id');
  if (isTimestamp(key)) return adviceOf('warn', 'timestamp');
  if (/^(?:[0-9a-f]+|[0-9A-F]+)$/.test(key) && [32, 40, 64, 96, 128].includes(key.length)) {
    return adviceOf('warn', 'hash');
  }
  if (/^\d{1,5}$/.test(key)) return adviceOf('warn', 'short-counter');
  return undefined;
}

function adviceOf(verdict: KeyAdvice['verdict'], kind: KeyAdvice['kind']): KeyAdvice {
  return { verdict, kind, reason: reasons[kind] };
}

/** `user:7` with key `user:7` or `7`. On the path of every call: nearly always one comparison. */
export function isScopeItself(key: string, scope: string): boolean {
  if (scope === globalScope || !scope.endsWith(key)) return false;
  return userWords.test(scope.slice(0, scope.length - key.length));
}

// Other scopes, such as an article, may well have the name of a customer in the key.
const userWords = /^((user|customer|member|account|client|principal):)?$/i;

const isoTime = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?$/;
// From 2001 to 2033, in seconds, milliseconds and microseconds.
const epoch = /^1\d{9}(\d{3}(\d{3})?)?(\.\d+)?$/;

function isTimestamp(key: string): boolean {
  return isoTime.test(key) || epoch.test(key);
}
