/** JSON Schemas of what comes in and goes out. Unknown members are refused, nothing is coerced. */

const id = { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$' };
const minor = { type: 'integer', minimum: 0, maximum: 100_000_000_000 };
const units = { type: 'integer', minimum: 0, maximum: 1_000_000_000 };
const time = { type: 'string', format: 'date-time' };

function object(properties: Record<string, object>): object {
  return {
    type: 'object',
    additionalProperties: false,
    required: Object.keys(properties),
    properties,
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
  status: { type: 'string', enum: ['PENDING_PAY', 'PAID', 'CANCELLED'] },
  createdAt: time,
});
export const paymentAnswer: object = object({
  orderNo: id,
  status: { const: 'PAID' },
  amountMinor: { type: 'integer' },
  paidAt: time,
});
export const cancellationAnswer: object = object({ orderNo: id, status: { const: 'CANCELLED' } });

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
