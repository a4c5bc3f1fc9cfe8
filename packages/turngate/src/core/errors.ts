/**
 * One table of everything that can go wrong: what code may switch on, what the store may have done,
 * which HTTP status says it, and what to do next. Documentation and tests read this table.
 */

/** What may have happened to the effect when the error was raised. */
export type ErrorOutcome = 'not-applied' | 'applied' | 'unknown';

interface ErrorRow {
  readonly outcome: ErrorOutcome;
  readonly httpStatus: number;
  readonly advice: string;
}

const rows = {
  OPTION_INVALID: {
    outcome: 'not-applied',
    httpStatus: 500,
    advice: 'Fix the option the message names; nothing was sent to any store.',
  },
  IDEMPOTENCY_KEY_MISSING: {
    outcome: 'not-applied',
    httpStatus: 400,
    advice: 'Send one Idempotency-Key per intent and keep it over all retries.',
  },
  IDEMPOTENCY_KEY_INVALID: {
    outcome: 'not-applied',
    httpStatus: 400,
    advice: 'Send 1 to 255 visible ASCII characters, bare or as one quoted string.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    outcome: 'not-applied',
    httpStatus: 422,
    advice: 'The key was used with another payload. A new intent needs a new key.',
  },
  IDEMPOTENCY_SCOPE_MISSING: {
    outcome: 'not-applied',
    httpStatus: 400,
    advice:
      'The request has no principal the key could belong to: authenticate, then send it again.',
  },
  IDEMPOTENCY_SCOPE_INVALID: {
    outcome: 'not-applied',
    httpStatus: 400,
    advice:
      'What the request says of its principal can be nobody: too long, control characters, blanks around it.',
  },
  PAYLOAD_INVALID: {
    outcome: 'not-applied',
    httpStatus: 400,
    advice:
      'The body has no one meaning (bad JSON, a repeated name, an integer beyond 2^53 - 1): fix it.',
  },
  PAYLOAD_TOO_LARGE: {
    outcome: 'not-applied',
    httpStatus: 413,
    advice: 'The body is larger than the route accepts; nothing was done.',
  },
  RESPONSE_NOT_KEPT: {
    outcome: 'applied',
    httpStatus: 409,
    advice: 'The work was done, but its answer was too large or a stream and was not kept.',
  },
  RESULT_NOT_KEPT: {
    outcome: 'applied',
    httpStatus: 409,
    advice:
      'The work was done, but its result was dropped early to save space; it is not run again.',
  },
  REQUEST_IN_PROGRESS: {
    outcome: 'unknown',
    httpStatus: 409,
    advice: 'The first request with this key is still running: retry later with the same key.',
  },
  DUPLICATE_REQUEST: {
    outcome: 'applied',
    httpStatus: 409,
    advice: 'The work was done by an earlier request; do not send it again.',
  },
  SUBMIT_TOKEN_INVALID: {
    outcome: 'not-applied',
    httpStatus: 400,
    advice: 'The token is unknown, expired, or of another user or operation: fetch a new one.',
  },
  REPEATED_SUBMIT: {
    outcome: 'applied',
    httpStatus: 409,
    advice: 'The token was spent by an earlier submit: look at what it did before submitting anew.',
  },
  REFUSED: {
    outcome: 'not-applied',
    httpStatus: 409,
    advice: 'The business refused and the refusal is remembered: a repeat gets the same answer.',
  },
  BUSY: {
    outcome: 'not-applied',
    httpStatus: 503,
    advice: 'Somebody else holds the lock: retry later with the same key.',
  },
  LOCK_LOST: {
    outcome: 'unknown',
    httpStatus: 503,
    advice: 'The lease ended under the work. Stop writing; only a checked fence protects the data.',
  },
  FENCE_STALE: {
    outcome: 'not-applied',
    httpStatus: 412,
    advice:
      'A newer holder has entered this data. Stop: take the lock again and start from reading.',
  },
  FENCE_INVALID: {
    outcome: 'not-applied',
    httpStatus: 400,
    advice: 'Send Turngate-Fence: enter or check, a blank, and the decimal fence of the lock.',
  },
  LOAD_FAILED: {
    outcome: 'not-applied',
    httpStatus: 503,
    advice: 'Loading failed a moment ago and the failure is remembered: retry after its time.',
  },
  LOCK_REENTERED: {
    outcome: 'not-applied',
    httpStatus: 500,
    advice: "This flow already holds the lock. Choose onReentry: 'join' if that is intended.",
  },
  OPERATION_NESTED: {
    outcome: 'not-applied',
    httpStatus: 500,
    advice: 'An operation ran within its own transaction with its own key; it would never end.',
  },
  ABORTED: {
    outcome: 'unknown',
    httpStatus: 503,
    advice: 'The caller stopped waiting. Work that had begun goes on: ask again with the same key.',
  },
  TRANSACTION_CONFLICT: {
    outcome: 'not-applied',
    httpStatus: 503,
    advice: 'The database rolled the transaction back (deadlock or serialization): retry it whole.',
  },
  TRANSACTION_REQUIRED: {
    outcome: 'not-applied',
    httpStatus: 500,
    advice: 'The handle given to within() is not inside an open transaction.',
  },
  TRANSACTION_ROLLED_BACK: {
    outcome: 'not-applied',
    httpStatus: 500,
    advice: 'COMMIT was answered with ROLLBACK: a failed statement inside was swallowed.',
  },
  OUTCOME_UNKNOWN: {
    outcome: 'unknown',
    httpStatus: 503,
    advice:
      'Whether it happened could be neither confirmed nor ruled out: retry with the same key.',
  },
  LEASE_LOST: {
    outcome: 'unknown',
    httpStatus: 503,
    advice: 'Another process took the operation over and finishes it: ask again with the same key.',
  },
  OPERATION_PARKED: {
    outcome: 'unknown',
    httpStatus: 503,
    advice: 'The operation failed too often and waits for an operator: never use a new key.',
  },
  STEP_INVALID: {
    outcome: 'unknown',
    httpStatus: 500,
    advice:
      'Fix the use of the step the message names: unique name, awaited, not nested, in limits.',
  },
  STEP_DIVERGED: {
    outcome: 'unknown',
    httpStatus: 500,
    advice:
      'The code took another path than the recorded one: deploy code that asks for the same steps.',
  },
  NOTHING_WRITTEN: {
    outcome: 'not-applied',
    httpStatus: 409,
    advice:
      'The declared write touched no row: the state it asks for is not there; the key is free.',
  },
  GID_EXPIRED: {
    outcome: 'not-applied',
    httpStatus: 410,
    advice: 'The global transaction is older than what is remembered: look at it by hand.',
  },
  BRANCH_NOT_TRIED: {
    outcome: 'not-applied',
    httpStatus: 409,
    advice: 'The try has not arrived yet: confirm again later.',
  },
  BRANCH_REFUSED: {
    outcome: 'not-applied',
    httpStatus: 409,
    advice: 'The branch was cancelled before its try came: do not try again.',
  },
  BRANCH_CONFLICT: {
    outcome: 'not-applied',
    httpStatus: 409,
    advice: 'Confirmed and cancelled at once: the coordinator is wrong; park it for an operator.',
  },
  BRANCH_MISMATCH: {
    outcome: 'not-applied',
    httpStatus: 422,
    advice: 'Use one branch name per payload.',
  },
  GUARDED: {
    outcome: 'not-applied',
    httpStatus: 409,
    advice: 'Another saga is changing this: try again when it has ended.',
  },
  STOCK_ITEM_UNKNOWN: {
    outcome: 'not-applied',
    httpStatus: 404,
    advice: 'Create the item before units of it are asked for.',
  },
  BILL_INCOMPLETE: {
    outcome: 'not-applied',
    httpStatus: 422,
    advice:
      'Fetch the bill again: header, rows and trailer do not belong together; nothing was compared.',
  },
  RECONCILIATION_NOT_FOUND: {
    outcome: 'not-applied',
    httpStatus: 404,
    advice: 'Run the reconciliation of this channel and date first.',
  },
  STORE_UNAVAILABLE: {
    outcome: 'not-applied',
    httpStatus: 503,
    advice: 'The store could not be reached or did not answer in time: retry with the same key.',
  },
  STORE_SCHEMA_MISSING: {
    outcome: 'not-applied',
    httpStatus: 500,
    advice: 'Run `turngate migrate`, or call migrate() at start-up.',
  },
  RESULT_INVALID: {
    outcome: 'not-applied',
    httpStatus: 500,
    advice: 'The handler returned something that cannot be stored; its work was rolled back.',
  },
  RECORD_UNREADABLE: {
    outcome: 'applied',
    httpStatus: 500,
    advice: 'The stored result was written by a newer version or is damaged; it is not run again.',
  },
  GATE_CLOSED: {
    outcome: 'not-applied',
    httpStatus: 503,
    advice: 'The process is shutting down: retry against another one.',
  },
} as const satisfies Record<string, ErrorRow>;

/** Every stable error code. Codes are never renamed or reused. */
export type ErrorCode = keyof typeof rows;

/** The error table, readable at run time (documentation, OpenAPI, `turngate explain`). */
export const errorTable: Readonly<Record<ErrorCode, ErrorRow>> = rows;

const brand = Symbol.for('turngate.error');

/** Facts that travel with an error. None of them is a payload or a secret. */
export interface ErrorDetail {
  /** Overrides the table where the same code can mean more (for example a settled commit). */
  readonly outcome?: ErrorOutcome;
  /** When trying again makes sense. Milliseconds from now. */
  readonly retryAfterMs?: number;
  /** When the first request with this key was processed (store clock). */
  readonly firstProcessedAt?: Date;
  /** A remembered business refusal: its code and data as the handler declared them. */
  readonly refusal?: Refusal;
  /** True when the answer comes from the record and not from a run of the handler. */
  readonly replayed?: boolean;
  readonly cause?: unknown;
}

/** A business refusal that is stored like a result. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly data?: unknown;
}

/**
 * The only error class Turngate throws. Switch on {@link TurngateError.code}; decide about retrying
 * by {@link TurngateError.outcome}. Recognise it with {@link isTurngateError}, which also works
 * when two copies of the package are loaded.
 */
export class TurngateError extends Error {
  override readonly name: string = 'TurngateError';
  readonly code: ErrorCode;
  readonly outcome: ErrorOutcome;
  readonly retryAfterMs: number | undefined;
  readonly firstProcessedAt: Date | undefined;
  readonly refusal: Refusal | undefined;
  readonly replayed: boolean;

  constructor(code: ErrorCode, message: string, detail: ErrorDetail = {}) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause });
    this.code = code;
    this.outcome = detail.outcome ?? rows[code].outcome;
    this.retryAfterMs = detail.retryAfterMs;
    this.firstProcessedAt = detail.firstProcessedAt;
    this.refusal = detail.refusal;
    this.replayed = detail.replayed ?? false;
    // A registered symbol, so that identity survives two copies of this package in one process.
    Object.defineProperty(this, brand, { value: true });
  }

  /** The HTTP status that says this error (see the error table). */
  get httpStatus(): number {
    return rows[this.code].httpStatus;
  }
}

/** Is it an error of ours (from any copy of the package), optionally with this code? */
export function isTurngateError(error: unknown, code?: ErrorCode): error is TurngateError {
  if (typeof error !== 'object' || error === null || !(brand in error)) return false;
  return code === undefined || (error as unknown as TurngateError).code === code;
}

/**
 * Thrown by a handler to refuse for business reasons *and have the refusal remembered*: what the
 * handler did is rolled back, the refusal is stored under the key, and every repeat gets it again.
 * Throw any other error to refuse without a memory: the key stays free and a retry runs again.
 */
export function refuse(code: string, message: string, data?: unknown): TurngateError {
  if (!/^[A-Z][A-Z0-9_]{0,63}$/.test(code)) {
    throw new TurngateError(
      'OPTION_INVALID',
      `refuse(): code must be 1 to 64 of A-Z, 0-9 and _, starting with a letter; got ${show(code)}`,
    );
  }
  const refusal = data === undefined ? { code, message } : { code, message, data };
  return new TurngateError('REFUSED', message, { refusal });
}

/** Shows a value in a message: short, on one line, never a whole payload. */
export function show(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number' || typeof value === 'boolean' || value == null)
    return String(value);
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}
