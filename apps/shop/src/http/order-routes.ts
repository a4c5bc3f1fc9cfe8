/** /api/orders */
import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { parseIdempotencyKey, replayHeaders } from 'turngate/http';
import { type CreateOrder, type OrderOperations, readOrder } from '../trade/orders.ts';
import {
  cancellationAnswer,
  orderAnswer,
  orderBody,
  orderParams,
  paymentAnswer,
  problemAnswer,
} from './schemas.ts';
import { writingSchema } from './writing-route.ts';

type OrderParams = { Params: { orderNo: string } };

/** Adds the routes. */
export function orderRoutes(app: FastifyInstance, pool: Pool, operations: OrderOperations): void {
  const { create, pay, cancel } = operations;
  app.post<{ Body: Omit<CreateOrder, 'idempotencyKey'> }>('/api/orders', {
    schema: writingSchema({
      policy: create.policy,
      summary: 'Create an order',
      body: orderBody,
      answers: { 201: orderAnswer },
      keyInHeader: true,
    }),
    // The key is judged before the body: a request without one is refused as such.
    preValidation: async (request) => {
      parseIdempotencyKey(request.headers['idempotency-key']);
    },
    handler: async (request, reply) => {
      const idempotencyKey = parseIdempotencyKey(request.headers['idempotency-key']);
      const outcome = await create({ idempotencyKey, ...request.body });
      return reply
        .code(201)
        .header('Location', `/api/orders/${outcome.value.orderNo}`)
        .headers(replayHeaders(outcome))
        .send(outcome.value);
    },
  });

  app.get<OrderParams>('/api/orders/:orderNo', {
    schema: {
      summary: 'Read an order',
      params: orderParams,
      response: { 200: orderAnswer, '4xx': problemAnswer },
    },
    handler: (request) => readOrder(pool, request.params.orderNo),
  });

  app.post<OrderParams>('/api/orders/:orderNo/pay', {
    schema: writingSchema({
      policy: pay.policy,
      summary: 'Pay an order: takes its stock and books one payment',
      params: orderParams,
      answers: { 200: paymentAnswer },
    }),
    handler: async (request, reply) => {
      const outcome = await pay({ orderNo: request.params.orderNo });
      return reply.headers(replayHeaders(outcome)).send(outcome.value);
    },
  });

  app.post<OrderParams>('/api/orders/:orderNo/cancel', {
    schema: writingSchema({
      policy: cancel.policy,
      summary: 'Cancel an unpaid order',
      params: orderParams,
      answers: { 200: cancellationAnswer },
    }),
    handler: async (request, reply) => {
      const outcome = await cancel({ orderNo: request.params.orderNo });
      return reply.headers(replayHeaders(outcome)).send(outcome.value);
    },
  });
}
