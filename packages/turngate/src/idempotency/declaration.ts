/** How an operation is declared: once, and everything else is derived from it. */
import { isTurngateError, type Refusal, TurngateError } from '../core/errors.ts';
import { fingerprintOf } from '../core/fingerprint.ts';
import { adviseKey, isScopeItself, type KeyAdvice } from '../core/key-advice.ts';
import {
  functionOption,
  integerOption,
  knownOptions,
  optionError,
  wordOption,
} from '../core/option.ts';
import {
  checkKey,
  checkOperationName,
  checkScope,
  globalScope,
  type RecordId,
} from '../core/record-id.ts';

/** What the handler gets besides the input. */
export interface OperationContext<Tx> {
  /** The transaction the record commits in. What is written elsewhere is not protected. */
  readonly tx: Tx;
  /** Aborts when the operation's lock is lost or the gate closes. */
  readonly signal: AbortSignal;
  /** The fence of the operation's lock; undefined for an operation without one. */
  readonly fence: bigint | undefined;
  readonly scope: string;
  readonly key: string;
}

/** A business action, declared once: its key, its fingerprint, its policy, its handler. */
export interface OperationDeclaration<Tx, Input, Value> {
  /** Names the action for ever: it is part of every record's identity. Like `order.pay`. */
  readonly name: string;
  /**
   * The idempotency key of an input: a business number, message id, event id or client key. Not a
   * user id alone (one user, one order for ever), not a timestamp (never repeats), not a hash of the
   * raw body (field order changes it).
   */
  readonly key: (input: Input) => string;
  /**
   * Tenant or principal the key belongs to. Leave it out only when keys are unique over all callers,
   * such as order numbers the service made itself.
   */
  readonly scope?: (input: Input) => string;
  /**
   * The parts of the input that may not change under one key; a repeat with others is answered
   * IDEMPOTENCY_KEY_REUSED. Default: the whole input.
   */
  readonly fingerprint?: (input: Input) => unknown;
  /** What a repeat of finished work gets: the first result, or DUPLICATE_REQUEST. Default `replay`. */
  readonly repeat?: 'replay' | 'reject';
  /** What a repeat gets while the first still runs: waits for it, or REQUEST_IN_PROGRESS. Default `wait`. */
  readonly inFlight?: 'wait' | 'reject';
  /**
   * How long a repeat waits for the first before REQUEST_IN_PROGRESS, and how long the first waits
   * for a running one elsewhere.
   *
   * @unit milliseconds, integer, 0 to 600_000
   * @default 10_000
   */
  readonly waitMs?: number;
  /**
   * How long a finished record answers repeats. Choose it longer than the longest retry, redelivery
   * or redrive that can bring the key again: after it, the key runs again.
   *
   * @unit milliseconds, integer, 1_000 to 3_650 days
   * @default 2_592_000_000 (30 days)
   */
  readonly retentionMs?: number;
  /**
   * Largest encoded result that is stored; a bigger one rolls the work back with RESULT_INVALID.
   *
   * @unit characters, integer, 1_000 to 16_777_216
   * @default 262_144
   */
  readonly resultCharsMax?: number;
  /** For documentation (OpenAPI): where the key comes from, in words, like "orderNo in the path". */
  readonly keySource?: string;
  /**
   * Does the work. Effects through `tx` commit with the record; the returned value is stored.
   * Throwing rolls everything back and frees the key; throw `refuse(…)` to have a refusal remembered.
   * It may run again after a deadlock or serialization failure was rolled back.
   */
  readonly run: (input: Input, context: OperationContext<Tx>) => Promise<Value> | Value;
}

/** A declaration after checking. */
export interface OperationPolicy {
  readonly name: string;
  readonly repeat: 'replay' | 'reject';
  readonly inFlight: 'wait' | 'reject';
  readonly waitMs: number;
  readonly retentionMs: number;
  readonly resultCharsMax: number;
  readonly keySource: string | undefined;
}

/** One call: identity and fingerprint, frozen before anything else happens. */
export interface Request {
  readonly id: RecordId;
  readonly fingerprint: string;
}

const known = [
  'name',
  'key',
  'scope',
  'fingerprint',
  'repeat',
  'inFlight',
  'waitMs',
  'retentionMs',
  'resultCharsMax',
  'keySource',
  'run',
];
const dayMs = 86_400_000;

/** @throws OPTION_INVALID */
export function checkDeclaration<Tx, Input, Value>(
  declaration: OperationDeclaration<Tx, Input, Value>,
): OperationPolicy {
  const name = checkOperationName(declaration.name);
  knownOptions(`operation "${name}"`, declaration, known);
  functionOption('key', declaration.key);
  functionOption('run', declaration.run);
  if (declaration.scope !== undefined) functionOption('scope', declaration.scope);
  if (declaration.fingerprint !== undefined) functionOption('fingerprint', declaration.fingerprint);
  const { keySource } = declaration;
  if (keySource !== undefined && typeof keySource !== 'string') {
    throw optionError('keySource', 'a string', keySource);
  }
  return {
    name,
    keySource,
    repeat: wordOption('repeat', declaration.repeat, ['replay', 'reject'], 'replay'),
    inFlight: wordOption('inFlight', declaration.inFlight, ['wait', 'reject'], 'wait'),
    ...checkNumbers(declaration),
  };
}

function checkNumbers(
  declaration: Pick<
    OperationDeclaration<never, never, never>,
    'waitMs' | 'retentionMs' | 'resultCharsMax'
  >,
): Pick<OperationPolicy, 'waitMs' | 'retentionMs' | 'resultCharsMax'> {
  const { waitMs, retentionMs, resultCharsMax } = declaration;
  return {
    waitMs: integerOption('waitMs', waitMs, { min: 0, max: 600_000, fallback: 10_000 }),
    retentionMs: integerOption('retentionMs', retentionMs, {
      min: 1_000,
      max: 3_650 * dayMs,
      fallback: 30 * dayMs,
    }),
    resultCharsMax: integerOption('resultCharsMax', resultCharsMax, {
      min: 1_000,
      max: 16_777_216,
      fallback: 262_144,
    }),
  };
}

/** @throws IDEMPOTENCY_KEY_MISSING, IDEMPOTENCY_KEY_INVALID, OPTION_INVALID; before any I/O */
export function requestOf<Tx, Input, Value>(
  declaration: OperationDeclaration<Tx, Input, Value>,
  input: Input,
): Request {
  const operation = declaration.name;
  const scope =
    declaration.scope === undefined ? globalScope : checkScope(declaration.scope(input));
  const key = checkKey(declaration.key(input));
  if (isScopeItself(key, scope)) {
    const { reason } = adviseKey(key, { scope }) as KeyAdvice;
    throw new TurngateError('IDEMPOTENCY_KEY_INVALID', `${operation}: ${reason}`);
  }
  const payload = declaration.fingerprint === undefined ? input : declaration.fingerprint(input);
  return { id: { operation, scope, key }, fingerprint: fingerprintOf(payload) };
}

/** Is it a refusal that shall be remembered? */
export function isRefusal(error: unknown): error is TurngateError & { readonly refusal: Refusal } {
  return isTurngateError(error, 'REFUSED') && error.refusal !== undefined;
}
