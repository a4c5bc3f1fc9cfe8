/** /api/orders */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Outcome } from 'turngate';
import { parseIdempotencyKey, replayHeaders } from 'turngate/http';
import { type CreateOrder, type Order, type OrderOperations, readOrder } from '../trade/orders.ts';
import { ShopError } from '../trade/shop-error.ts';
import type { Store } from '../trade/store.ts';
import type { Submits } from '../trade/submits.ts';
import { operationCall } from './operation-call.ts';
import {
  orderAnswer,
  orderBody,
  orderParams,
  paymentAnswer,
  payOrderBody,
  problemAnswer,
  stepAnswer,
} from './schemas.ts';
import { writingSchema } from './writing-route.ts';

type OrderForm = Omit<CreateOrder, 'idempotencyKey'>;

/** Adds the routes. */
export function orderRoutes(
  app: FastifyInstance,
  store: Store,
  operations: OrderOperations,
  { submit }: Submits,
): void {
  const { create, pay, cancel, ship, complete } = operations;
  createRoute(app, create, submit);
  app.get<{ Params: { orderNo: string } }>('/api/orders/:orderNo', {
    schema: {
      summary: 'Read an order',
      params: orderParams,
      response: { 200: orderAnswer, '4xx': problemAnswer },
    },
    handler: (request) => readOrder(store.database, request.params.orderNo),
  });

  operationCall(app, {
    url: '/api/orders/:orderNo/pay',
    operation: pay,
    summary:
      'Pay an order at once, in cash or from the balance: takes its stock, books one payment',
    params: orderParams,
    body: payOrderBody,
    answer: paymentAnswer,
    status: 200,
    input: ({ params, body }) => ({
      orderNo: params['orderNo'] as string,
      ...((body as object | null | undefined) ?? {}),
    }),
  });
  const steps = [
    ['cancel', cancel, 'Cancel an unpaid order'],
    ['ship', ship, 'Ship a paid order'],
    ['complete', complete, 'Complete a shipped order'],
  ] as const;
  for (const [verb, operation, summary] of steps) {
    operationCall(app, {
      url: `/api/orders/:orderNo/${verb}`,
      operation,
      summary,
      params: orderParams,
      answer: stepAnswer,
      status: 200,
      input: ({ params }) => ({ orderNo: params['orderNo'] as string }),
    });
  }
}

function createRoute(
  app: FastifyInstance,
  create: OrderOperations['create'],
  submit: Submits['submit'],
): void {
  app.post<{ Body: OrderForm }>('/api/orders', {
    schema: writingSchema({
      policy: create.policy,
      submitPolicy: submit.policy,
      summary: 'Create an order',
      body: orderBody,
      answers: { 201: orderAnswer },
      keyInHeader: true,
    }),
    // The key is judged before the body: a request without one is refused as such.
    preValidation: async (request) => {
      keyOf(request);
    },
    handler: async (request, reply) => {
      const { idempotencyKey, token } = keyOf(request);
      const outcome =
        token === undefined
          ? await create({ idempotencyKey, ...request.body })
          : firstSubmit(await submit({ token, ...request.body }));
      return reply
        .code(201)
        .header('Location', `/api/orders/${outcome.value.orderNo}`)
        .headers(replayHeaders(outcome))
        .send(outcome.value);
    },
  });
}

type RequestKey =
  | { readonly idempotencyKey: string; readonly token?: undefined }
  | { readonly idempotencyKey?: undefined; readonly token: string };

/** Exactly one of the two headers. A token is judged when it is spent. */
function keyOf({ headers }: FastifyRequest): RequestKey {
  const token = headers['submit-token'];
  const key = headers['idempotency-key'];
  if (token === undefined) return { idempotencyKey: parseIdempotencyKey(key) };
  if (key !== undefined) {
    const detail = 'send Idempotency-Key or Submit-Token, not both';
    throw new ShopError('VALIDATION_FAILED', detail);
  }
  return { token: String(token) };
}

/** A form is submitted once; what came of it is told to whoever submits it again. */
function firstSubmit(outcome: Outcome<Order>): Outcome<Order> {
  if (!outcome.replayed) return outcome;
  throw new ShopError('REPEATED_SUBMIT', 'this form was submitted before', {
    firstProcessedAt: outcome.firstProcessedAt.toISOString(),
    orderNo: outcome.value.orderNo,
  });
}
