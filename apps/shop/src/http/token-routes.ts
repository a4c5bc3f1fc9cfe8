/** /api/tokens */
import type { FastifyInstance } from 'fastify';
import { type Submits, tokenOperation } from '../trade/submits.ts';
import { problemAnswer, tokenAnswer, tokenBody } from './schemas.ts';

const statement = {
  operation: 'token.issue',
  supported: false,
  key: 'none, and none is needed',
  repeat: 'another token; one that is not used expires',
  inFlight: 'another token',
  retentionSeconds: 0,
};

/** Adds the route. */
export function tokenRoutes(app: FastifyInstance, { tokens }: Submits): void {
  app.post<{ Body: { operation: string; userId: string } }>('/api/tokens', {
    schema: {
      summary: 'Get a token for one order form',
      description: `Not idempotent. Key: ${statement.key}. A repeat gets ${statement.repeat}.`,
      'x-idempotency': statement,
      body: tokenBody(tokenOperation),
      response: { 201: tokenAnswer, '4xx': problemAnswer, '5xx': problemAnswer },
    } as object,
    handler: async ({ body }, reply) => {
      const { token, expiresAt } = await tokens.issue({
        operation: body.operation,
        subject: `user:${body.userId}`,
      });
      return reply
        .code(201)
        .header('Cache-Control', 'no-store')
        .send({ token, expiresAt: expiresAt.toISOString() });
    },
  });
}
