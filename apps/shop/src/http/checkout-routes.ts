/** /api/checkouts */
import type { FastifyInstance } from 'fastify';
import type { Checkout, CheckoutRequest } from '../trade/checkout.ts';
import { operationCall } from './operation-call.ts';
import { checkoutAnswer, checkoutBody } from './schemas.ts';

/** Adds the route. */
export function checkoutRoutes(app: FastifyInstance, checkout: Checkout): void {
  operationCall(app, {
    url: '/api/checkouts',
    operation: checkout,
    summary: 'Buy from the depot: balance, stock and coupon together or not at all',
    body: checkoutBody,
    answer: checkoutAnswer,
    status: 201,
    input: ({ body }) => body as CheckoutRequest,
    output: ({ gid, outputs }, { checkoutNo }) => ({
      checkoutNo,
      gid,
      status: 'CONFIRMED',
      amountMinor: (outputs['balance'] as { amountMinor: number }).amountMinor,
    }),
  });
}
