/** Routes for whoever runs the service: audit, health, metrics. */
import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import type { Registry } from 'prom-client';
import { audit } from '../trade/audit.ts';
import { auditAnswer } from './schemas.ts';

/** Adds the routes. */
export function operationRoutes(app: FastifyInstance, pool: Pool, registry: Registry): void {
  app.get('/api/audit', {
    schema: {
      summary: 'Every broken invariant, recomputed from the tables',
      response: { 200: auditAnswer },
    },
    handler: () => audit(pool),
  });
  app.get('/healthz', {
    schema: { summary: 'Is the service able to work?' },
    handler: async () => {
      await pool.query('SELECT 1'); // Throws into a 503 when the database is away.
      return { status: 'ok' };
    },
  });
  app.get('/metrics', {
    schema: { summary: 'Prometheus metrics' },
    handler: async (_request, reply) =>
      reply.type(registry.contentType).send(await registry.metrics()),
  });
}
