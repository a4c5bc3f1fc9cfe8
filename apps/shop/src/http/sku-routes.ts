/** /api/skus */
import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { isTurngateError } from 'turngate';
import { replayHeaders } from 'turngate/http';
import { ShopError } from '../trade/shop-error.ts';
import { type Restock, readSku, type Sku, type SkuOperations } from '../trade/skus.ts';
import { problemAnswer, restockAnswer, restockBody, skuBody, skuParams } from './schemas.ts';
import { writingSchema } from './writing-route.ts';

/** Adds the routes. */
export function skuRoutes(app: FastifyInstance, pool: Pool, operations: SkuOperations): void {
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
      response: { 200: skuBody, '4xx': problemAnswer },
    },
    handler: (request) => readSku(pool, request.params.skuId),
  });

  app.post<{ Params: { skuId: string }; Body: Omit<Restock, 'skuId'> }>(
    '/api/skus/:skuId/restocks',
    {
      schema: writingSchema({
        policy: restock.policy,
        summary: 'Add units to an article',
        params: skuParams,
        body: restockBody,
        answers: { 201: restockAnswer },
      }),
      handler: async (request, reply) => {
        const outcome = await restock({ ...request.params, ...request.body });
        return reply.code(201).headers(replayHeaders(outcome)).send(outcome.value);
      },
    },
  );
}
