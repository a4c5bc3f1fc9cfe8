/** /api/orders/:orderNo/returns */
import type { FastifyInstance } from 'fastify';
import { type ReturnOrder, type Returns, readReturn } from '../trade/returns.ts';
import type { Store } from '../trade/store.ts';
import { operationCall } from './operation-call.ts';
import { orderParams, problemAnswer, returnAnswer, returnBody, returnParams } from './schemas.ts';

/** Adds the routes. */
export function returnRoutes(
  app: FastifyInstance,
  store: Store,
  { accept, proceed }: Returns,
): void {
  operationCall(app, {
    url: '/api/orders/:orderNo/returns',
    operation: accept,
    summary: 'Send everything back: refund, stock, coupon, word to the customer',
    params: orderParams,
    body: returnBody,
    answer: returnAnswer,
    status: 201,
    input: ({ params, body }) => ({
      orderNo: params['orderNo'] as string,
      ...(body as Omit<ReturnOrder, 'orderNo'>),
    }),
    // Nobody waits for it; what fails now is taken up by recovery.
    after: (input) => void proceed(input).catch(() => undefined),
  });
  app.get<{ Params: { orderNo: string; returnNo: string } }>(
    '/api/orders/:orderNo/returns/:returnNo',
    {
      schema: {
        summary: 'Read a return',
        params: returnParams,
        response: { 200: returnAnswer, '4xx': problemAnswer },
      },
      handler: ({ params }) => readReturn(store, params),
    },
  );
}
