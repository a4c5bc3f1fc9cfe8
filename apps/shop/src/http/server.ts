/** The HTTP service over the library's public entries. */
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { createGate, type Gate, parseStrictJson } from 'turngate';
import { memoryLocks } from 'turngate/memory';
import { type PgClientLike, postgres } from 'turngate/postgres';
import { logEvents } from '../observe/logging.ts';
import { startMetrics } from '../observe/metrics.ts';
import { orderOperations } from '../trade/orders.ts';
import { skuOperations } from '../trade/skus.ts';
import { handleErrors, sendError } from './errors.ts';
import { operationRoutes } from './operation-routes.ts';
import { orderRoutes } from './order-routes.ts';
import { skuRoutes } from './sku-routes.ts';
import { requireStatements } from './writing-route.ts';

/** The service and the gate behind it. */
export interface ShopServer {
  readonly app: FastifyInstance;
  readonly gate: Gate<PgClientLike>;
  /** Stops taking requests, finishes what runs. The pool stays open. */
  close(): Promise<void>;
}

/** Builds it; call `app.listen` or `app.inject` on the result. */
export async function buildServer(pool: Pool, logger: Logger): Promise<ShopServer> {
  const gate = createGate({ records: postgres(pool), locks: memoryLocks() });
  const metrics = startMetrics();
  const stopLogging = logEvents(logger);
  const app: FastifyInstance = Fastify({
    loggerInstance: logger as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    frameworkErrors: (error, _request, reply) => {
      void sendError(reply, error);
    },
    bodyLimit: 65_536,
    // Nothing is coerced, dropped or defaulted: what is not valid is refused.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
  });
  requireStatements(app);
  handleErrors(app);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'string' },
    async (_request: unknown, text: string) => (text === '' ? undefined : parseBody(text)),
  );
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Turngate shop',
        version: '0.1.0',
        description: 'Reference order-payment service. Money is integer minor units.',
      },
    },
  });
  await app.register(swaggerUi, { routePrefix: '/docs' });
  app.get('/openapi.json', { schema: { hide: true }, handler: () => app.swagger() });
  skuRoutes(app, pool, skuOperations(gate));
  orderRoutes(app, pool, orderOperations(gate));
  operationRoutes(app, pool, metrics.registry);
  return {
    app,
    gate,
    async close() {
      await app.close();
      await gate.close();
      metrics.stop();
      stopLogging();
    },
  };
}

function parseBody(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) Object.assign(error, { statusCode: 400 });
    throw error;
  }
}
