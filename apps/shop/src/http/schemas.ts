/** JSON Schemas of what comes in and goes out. Unknown members are refused, nothing is coerced. */

const id = { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$' };
const minor = { type: 'integer', minimum: 0, maximum: 100_000_000_000 };
const units = { type: 'integer', minimum: 0, maximum: 1_000_000_000 };
const time = { type: 'string', format: 'date-time' };

function object(properties: Record<string, object>, optional: Record<string, object> = {}): object {
  return {
    type: 'object',
    additionalProperties: false,
    required: Object.keys(properties),
    properties: { ...properties, ...optional },
  };
}

export const skuBody: object = object({
  skuId: id,
  // Printable text: no control characters, no lone surrogates.
  name: { type: 'string', pattern: '^[^\\p{Cc}\\p{Cs}]{1,200}$' },
  priceMinor: minor,
  stock: units,
});
export const skuParams: object = object({ skuId: id });
export const restockBody: object = object({ restockNo: id, units: { ...units, minimum: 1 } });
export const restockAnswer: object = object({ skuId: id, restockNo: id, units });

/** @param operation what tokens are issued for */
export function tokenBody(operation: string): object {
  return object({ operation: { const: operation }, userId: id });
}
export const tokenAnswer: object = object({ token: { type: 'string' }, expiresAt: time });

export const orderBody: object = object({
  userId: id,
  skuId: id,
  quantity: { type: 'integer', minimum: 1, maximum: 10_000 },
});
export const orderParams: object = object({ orderNo: id });
export const orderAnswer: object = object({
  orderNo: id,
  userId: id,
  skuId: id,
  quantity: units,
  amountMinor: { type: 'integer' },
  currency: { type: 'string' },
  status: {
    type: 'string',
    enum: ['PENDING_PAY', 'PAID', 'SHIPPED', 'COMPLETED', 'CLOSING', 'CLOSED', 'CANCELLED'],
  },
  createdAt: time,
});
export const paymentAnswer: object = object({
  orderNo: id,
  status: { const: 'PAID' },
  amountMinor: { type: 'integer' },
  paidAt: time,
});
export const stepAnswer: object = object({
  orderNo: id,
  status: { type: 'string', enum: ['CANCELLED', 'SHIPPED', 'COMPLETED'] },
});
/** Nothing at all is as good as an empty object. */
export const emptyBody: object = { type: ['object', 'null'], additionalProperties: false };
export const payOrderBody: object = {
  type: ['object', 'null'],
  additionalProperties: false,
  properties: { source: { type: 'string', enum: ['CASH', 'BALANCE'] } },
};

const amount = { ...minor, minimum: 1 };
export const attemptAnswer: object = object({
  paymentNo: id,
  payUrl: { type: 'string' },
  status: { const: 'PENDING' },
});
export const refundBody: object = object({ refundNo: id, amountMinor: amount });
export const refundAnswer: object = object({
  refundNo: id,
  status: { type: 'string', enum: ['PENDING', 'SUCCEEDED'] },
});
export const returnBody: object = object({ returnNo: id });
export const returnParams: object = object({ orderNo: id, returnNo: id });
export const returnAnswer: object = object({
  orderNo: id,
  returnNo: id,
  status: {
    type: 'string',
    enum: ['REFUNDING', 'REFUNDED', 'RESTOCKED', 'COUPON_BACK', 'DONE', 'REFUSED'],
  },
  amountMinor: amount,
});
export const supplyBody: object = object({ supplyNo: id, units: { ...units, minimum: 1 } });
export const supplyAnswer: object = object({ skuId: id, supplyNo: id, units });
export const depotAnswer: object = object({ skuId: id, left: units, held: units, sold: units });
export const checkoutBody: object = object(
  {
    userId: id,
    checkoutNo: id,
    skuId: id,
    units: { type: 'integer', minimum: 1, maximum: 10_000 },
  },
  { couponId: id },
);
export const checkoutAnswer: object = object({
  checkoutNo: id,
  gid: { type: 'string' },
  status: { const: 'CONFIRMED' },
  amountMinor: { type: 'integer' },
});
export const callbackBody: object = object({
  eventId: id,
  paymentNo: id,
  orderNo: id,
  tradeNo: id,
  amountMinor: minor,
  currency: { type: 'string', pattern: '^[A-Z]{3}$' },
  status: { type: 'string', enum: ['SUCCESS', 'FAILED'] },
  paidAt: { type: 'string', minLength: 1, maxLength: 64 },
});

export const accountParams: object = object({ userId: id });
export const accountAnswer: object = object({ userId: id, balanceMinor: { type: 'integer' } });
export const pointsAnswer: object = object({ userId: id, points: { type: 'integer' } });
export const movementBody: object = object({ txnNo: id, amountMinor: amount });
export const movementAnswer: object = object({
  userId: id,
  txnNo: id,
  amountMinor: amount,
  balanceMinor: { type: 'integer' },
});

const count = { ...units, minimum: 1 };
export const couponParams: object = object({ couponId: id });
export const couponBody: object = object({ couponId: id, total: count, perUser: count });
export const redeemBody: object = object({ userId: id }, { redeemNo: id });
export const redemptionAnswer: object = object({
  couponId: id,
  userId: id,
  redeemNo: id,
  redeemedAt: time,
});
export const activityParams: object = object({ activityId: id });
export const activityBody: object = object({
  activityId: id,
  skuId: id,
  units: count,
  perUser: { const: 1 },
});
export const buyerBody: object = object({ userId: id });
export const purchaseAnswer: object = object({ orderNo: id });

const date = { type: 'string', pattern: '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$' };
const channelName = { type: 'string', pattern: '^[a-z0-9-]{1,64}$' };
export const dateParams: object = object({ date });
export const reconciliationBody: object = object({ date, channel: channelName });
export const reconciliationQuery: object = object({}, { channel: channelName });
const text = { type: 'string' };
export const reconciliationAnswer: object = object({
  date,
  channel: channelName,
  counts: { type: 'object', additionalProperties: { type: 'integer' } },
  breaks: {
    type: 'array',
    items: object({
      code: text,
      severity: text,
      kind: text,
      key: text,
      amountMinor: { type: 'integer' },
      currency: text,
      detail: text,
    }),
  },
});

export const auditAnswer: object = object({
  violations: {
    type: 'array',
    items: object({ rule: { type: 'string' }, id: { type: 'string' }, detail: { type: 'string' } }),
  },
  orders: object({ byStatus: { type: 'object', additionalProperties: { type: 'integer' } } }),
  stock: {
    type: 'array',
    items: object({ skuId: id, initial: units, current: { type: 'integer' }, soldUnits: units }),
  },
});

export const problemAnswer: object = {
  description: 'RFC 9457 problem details with a stable code',
  content: {
    'application/problem+json': {
      schema: {
        type: 'object',
        required: ['type', 'title', 'status', 'code', 'detail'],
        properties: {
          type: { type: 'string' },
          title: { type: 'string' },
          status: { type: 'integer' },
          code: { type: 'string' },
          detail: { type: 'string' },
        },
        additionalProperties: true,
      },
    },
  },
};

export const tooManyAnswer: object = {
  ...problemAnswer,
  description: 'TOO_MANY_REQUESTS: the address asks too often; Retry-After says when to ask again',
  headers: {
    'Retry-After': { description: 'Seconds', schema: { type: 'integer', minimum: 1 } },
  },
};
