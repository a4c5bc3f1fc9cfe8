/** /api/skus */
import type { FastifyInstance, onRequestAsyncHookHandler } from 'fastify';
import { isTurngateError } from 'turngate';
import { replayHeaders } from 'turngate/http';
import { ShopError } from '../trade/shop-error.ts';
import type { Restock, Sku, SkuOperations } from '../trade/skus.ts';
import { operationCall } from './operation-call.ts';
import {
  problemAnswer,
  restockAnswer,
  restockBody,
  skuBody,
  skuParams,
  tooManyAnswer,
} from './schemas.ts';
import { writingSchema } from './writing-route.ts';

/** Reading an article, and how often a client may. */
export interface ProductPage {
  readonly read: (skuId: string) => Promise<Sku>;
  readonly limit: onRequestAsyncHookHandler;
}

/** Adds the routes. */
export function skuRoutes(
  app: FastifyInstance,
  page: ProductPage,
  operations: SkuOperations,
): void {
  const { create, restock } = operations;
  app.post<{ Body: Sku }>('/api/skus', {
    schema: writingSchema({
      policy: create.policy,
      summary: 'Create an article',
      body: skuBody,
      answers: { 201: skuBody, 200: skuBody },
    }),
    handler: async (request, reply) => {
      const outcome = await create(request.body).catch((error: unknown) => {
        // The article's own number is the key: another definition is a conflict about the article.
        if (!isTurngateError(error, 'IDEMPOTENCY_KEY_REUSED')) throw error;
        throw new ShopError('SKU_CONFLICT', 'this article exists with another definition');
      });
      return reply
        .code(outcome.replayed ? 200 : 201)
        .headers(replayHeaders(outcome))
        .send(outcome.value);
    },
  });

  app.get<{ Params: { skuId: string } }>('/api/skus/:skuId', {
    schema: {
      summary: 'Read an article',
      params: skuParams,
      response: { 200: skuBody, 429: tooManyAnswer, '4xx': problemAnswer },
    },
    onRequest: page.limit,
    handler: (request) => page.read(request.params.skuId),
  });

  operationCall(app, {
    url: '/api/skus/:skuId/restocks',
    operation: restock,
    summary: 'Add units to an article',
    params: skuParams,
    body: restockBody,
    answer: restockAnswer,
    status: 201,
    input: ({ params, body }) => ({
      skuId: params['skuId'] as string,
      ...(body as Omit<Restock, 'skuId'>),
    }),
  });
}
