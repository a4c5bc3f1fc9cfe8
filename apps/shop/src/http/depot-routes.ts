/** /api/depot: on the shop when the depot is part of it, else on the depot's own service. */
import type { FastifyInstance } from 'fastify';
import type { Operation } from 'turngate';
import type { SqlDatabase } from 'turngate/contract';
import { readDepot, type Supply } from '../depot/depot.ts';
import type { Tx } from '../trade/store.ts';
import { operationCall } from './operation-call.ts';
import { depotAnswer, skuParams, supplyAnswer, supplyBody } from './schemas.ts';

/** Adds the routes. */
export function depotRoutes(
  app: FastifyInstance,
  database: SqlDatabase<Tx>,
  supply: Operation<Tx, Supply, Supply>,
): void {
  operationCall(app, {
    url: '/api/depot/:skuId/supplies',
    operation: supply,
    summary: 'Supply the depot with units of an article',
    params: skuParams,
    body: supplyBody,
    answer: supplyAnswer,
    status: 201,
    input: ({ params, body }) => ({
      skuId: params['skuId'] as string,
      ...(body as Omit<Supply, 'skuId'>),
    }),
  });
  app.get<{ Params: { skuId: string } }>('/api/depot/:skuId', {
    schema: {
      summary: 'Units in the depot: left, held by checkouts, sold',
      params: skuParams,
      response: { 200: depotAnswer },
    },
    handler: ({ params: { skuId } }) => readDepot(database, skuId),
  });
}
