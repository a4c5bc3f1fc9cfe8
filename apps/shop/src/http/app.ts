/** A bare HTTP service as all of ours are: strict JSON in, problem+json out, OpenAPI at /docs. */
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import type { Logger } from 'pino';
import { parseStrictJson } from 'turngate';
import { handleErrors, sendError } from './errors.ts';
import { requireStatements } from './writing-route.ts';

/** What the service says about itself. */
export interface AppInfo {
  readonly title: string;
  readonly description: string;
}

/** Makes it, without routes. */
export async function newApp(logger: Logger, info: AppInfo): Promise<FastifyInstance> {
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
    openapi: { openapi: '3.1.0', info: { ...info, version: '0.1.0' } },
  });
  await app.register(swaggerUi, { routePrefix: '/docs' });
  app.get('/openapi.json', { schema: { hide: true }, handler: () => app.swagger() });
  return app;
}

function parseBody(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) Object.assign(error, { statusCode: 400 });
    throw error;
  }
}
