/** Payments through the channel, refunds, balances. */
import type { FastifyInstance } from 'fastify';
import type { Operation } from 'turngate';
import { readPoints } from '../messages/points.ts';
import {
  type AccountOperations,
  type Movement,
  type MovementDone,
  readBalance,
} from '../trade/accounts.ts';
import { currentAttempt, type PaymentAttempt, type StartPayment } from '../trade/payments.ts';
import type { Refund, RefundOrder } from '../trade/refunds.ts';
import type { Store, Tx } from '../trade/store.ts';
import { operationCall } from './operation-call.ts';
import {
  accountAnswer,
  accountParams,
  attemptAnswer,
  emptyBody,
  movementAnswer,
  movementBody,
  orderParams,
  pointsAnswer,
  problemAnswer,
  refundAnswer,
  refundBody,
} from './schemas.ts';

/** Writing calls about money. */
export interface MoneyOperations extends AccountOperations {
  readonly startPayment: Operation<Tx, StartPayment, PaymentAttempt>;
  readonly refund: Operation<Tx, RefundOrder, Refund>;
}

/** Adds the routes. */
export function moneyRoutes(app: FastifyInstance, store: Store, operations: MoneyOperations): void {
  const { startPayment, refund, deposit, withdraw } = operations;
  operationCall(app, {
    url: '/api/orders/:orderNo/payments',
    operation: startPayment,
    summary: 'Start paying through the channel; its callback completes it',
    params: orderParams,
    body: emptyBody,
    answer: attemptAnswer,
    status: 201,
    input: async ({ params }) => {
      const orderNo = params['orderNo'] as string;
      return { orderNo, attempt: await currentAttempt(store.database, orderNo) };
    },
  });
  operationCall(app, {
    url: '/api/orders/:orderNo/refunds',
    operation: refund,
    summary: 'Give money back, never more than was captured',
    params: orderParams,
    body: refundBody,
    answer: refundAnswer,
    status: 201,
    input: ({ params, body }) => ({
      orderNo: params['orderNo'] as string,
      ...(body as Omit<RefundOrder, 'orderNo'>),
    }),
  });
  const movements: readonly [string, Operation<Tx, Movement, MovementDone>, string][] = [
    ['deposits', deposit, 'Put money into a balance'],
    ['withdrawals', withdraw, 'Take money out of a balance'],
  ];
  for (const [noun, operation, summary] of movements) {
    operationCall(app, {
      url: `/api/accounts/:userId/${noun}`,
      operation,
      summary,
      params: accountParams,
      body: movementBody,
      answer: movementAnswer,
      status: 201,
      input: ({ params, body }) => ({
        userId: params['userId'] as string,
        ...(body as Omit<Movement, 'userId'>),
      }),
    });
  }
  app.get<{ Params: { userId: string } }>('/api/accounts/:userId', {
    schema: {
      summary: 'Read a balance; who never had one has zero',
      params: accountParams,
      response: { 200: accountAnswer, '4xx': problemAnswer },
    },
    handler: async ({ params: { userId } }) => {
      const { dialect } = store.database;
      const query = store.database.query.bind(store.database);
      return { userId, balanceMinor: await readBalance({ dialect, query }, userId) };
    },
  });
  pointsRoute(app, store);
}

function pointsRoute(app: FastifyInstance, store: Store): void {
  app.get<{ Params: { userId: string } }>('/api/accounts/:userId/points', {
    schema: {
      summary: 'Read points; they follow the payment by a message',
      params: accountParams,
      response: { 200: pointsAnswer, '4xx': problemAnswer },
    },
    handler: async ({ params: { userId } }) => ({
      userId,
      points: await readPoints(store.database, userId),
    }),
  });
}
