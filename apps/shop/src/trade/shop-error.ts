/** The shop's own answers that are errors, each with a stable code. */

const statuses = {
  VALIDATION_FAILED: 400,
  SIGNATURE_INVALID: 401,
  SKU_NOT_FOUND: 404,
  ORDER_NOT_FOUND: 404,
  COUPON_NOT_FOUND: 404,
  ACTIVITY_NOT_FOUND: 404,
  RETURN_NOT_FOUND: 404,
  ROUTE_NOT_FOUND: 404,
  SKU_CONFLICT: 409,
  OUT_OF_STOCK: 409,
  ORDER_STATE_CONFLICT: 409,
  COUPON_CONFLICT: 409,
  COUPON_EXHAUSTED: 409,
  ACTIVITY_CONFLICT: 409,
  SOLD_OUT: 409,
  REFUND_EXCEEDS_CAPTURED: 409,
  RETURN_CONFLICT: 409,
  INSUFFICIENT_BALANCE: 409,
  REPEATED_SUBMIT: 409,
  RECONCILIATION_RUNNING: 409,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  CALLBACK_MISMATCH: 422,
  TOO_MANY_REQUESTS: 429,
  INTERNAL_ERROR: 500,
} as const;

/** Codes of the shop; Turngate's own codes come on top. */
export type ShopErrorCode = keyof typeof statuses;

/** A refusal of the shop. Thrown inside an operation it rolls back and leaves the key free. */
export class ShopError extends Error {
  override readonly name = 'ShopError';
  readonly code: ShopErrorCode;
  readonly extensions: Record<string, unknown>;
  /** When to ask again, where that is known. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: ShopErrorCode,
    message: string,
    extensions: Record<string, unknown> = {},
    retryAfterMs?: number,
  ) {
    super(message);
    this.code = code;
    this.extensions = extensions;
    this.retryAfterMs = retryAfterMs;
  }

  get status(): number {
    return statuses[this.code];
  }
}
