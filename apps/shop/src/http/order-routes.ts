/** /api/orders */
import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import type { Operation } from 'turngate';
import { parseIdempotencyKey, replayHeaders } from 'turngate/http';
import type { PgClientLike } from 'turngate/postgres';
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

  orderAction(app, 'pay', pay, {
    summary: 'Pay an order: takes its stock and books one payment',
    answer: paymentAnswer,
  });
  orderAction(app, 'cancel', cancel, {
    summary: 'Cancel an unpaid order',
    answer: cancellationAnswer,
  });
}

/** A step in an order's life: no body, the order number is the key. */
function orderAction<Answer>(
  app: FastifyInstance,
  verb: string,
  operation: Operation<PgClientLike, { readonly orderNo: string }, Answer>,
  { summary, answer }: { readonly summary: string; readonly answer: object },
): void {
  app.post<OrderParams>(`/api/orders/:orderNo/${verb}`, {
    schema: writingSchema({
      policy: operation.policy,
      summary,
      params: orderParams,
      answers: { 200: answer },
    }),
    handler: async (request, reply) => {
      const outcome = await operation({ orderNo: request.params.orderNo });
      return reply.headers(replayHeaders(outcome)).send(outcome.value);
    },
  });
}
