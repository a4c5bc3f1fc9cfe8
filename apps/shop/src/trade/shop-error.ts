/** The shop's own answers that are errors, each with a stable code. */

const statuses = {
  VALIDATION_FAILED: 400,
  SKU_NOT_FOUND: 404,
  ORDER_NOT_FOUND: 404,
  ROUTE_NOT_FOUND: 404,
  SKU_CONFLICT: 409,
  OUT_OF_STOCK: 409,
  ORDER_STATE_CONFLICT: 409,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  INTERNAL_ERROR: 500,
} as const;

/** Codes of the shop; Turngate's own codes come on top. */
export type ShopErrorCode = keyof typeof statuses;

/** A refusal of the shop. Thrown inside an operation it rolls back and leaves the key free. */
export class ShopError extends Error {
  override readonly name = 'ShopError';
  readonly code: ShopErrorCode;
  readonly extensions: Record<string, unknown>;

  constructor(code: ShopErrorCode, message: string, extensions: Record<string, unknown> = {}) {
    super(message);
    this.code = code;
    this.extensions = extensions;
  }

  get status(): number {
    return statuses[this.code];
  }
}
