/** Routes for whoever runs the service: audit, health, metrics. */
import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import { audit } from '../trade/audit.ts';
import type { Store } from '../trade/store.ts';
import { auditAnswer } from './schemas.ts';

/** Adds the routes. */
export function operationRoutes(app: FastifyInstance, store: Store, registry: Registry): void {
  app.get('/api/audit', {
    schema: {
      summary: 'Every broken invariant, recomputed from the tables',
      response: { 200: auditAnswer },
    },
    handler: () => audit(store),
  });
  app.get('/healthz', {
    schema: { summary: 'Is the service able to work?' },
    handler: async () => {
      await store.database.query('SELECT 1', []); // Throws into a 503 when the database is away.
      return { status: 'ok' };
    },
  });
  app.get('/metrics', {
    schema: { summary: 'Prometheus metrics' },
    handler: async (_request, reply) =>
      reply.type(registry.contentType).send(await registry.metrics()),
  });
}
