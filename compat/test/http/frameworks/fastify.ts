/** Fastify 5. */
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import Fastify from 'fastify';
import { turngateFastify } from 'turngate/fastify';
import { bodyOf, callOf, chunksOf, type Framework, type Reply } from '../world.ts';

// biome-ignore lint/suspicious/noExplicitAny: routes are made from data.
type Any = any;

export const fastifyFramework: Framework = {
  name: 'fastify',
  unable: {
    'L59: a compressor outside the layer codes first and repeat as each accepts':
      'its compressor is an onSend hook, so inside the held response; the next law is its own',
  },
  async start(world, routes) {
    const app: Any = Fastify({ bodyLimit: 20_000_000, routerOptions: {} });
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', { parseAs: 'string' }, (_req: Any, body: Any, done: Any) =>
      done(null, body),
    );
    app.setErrorHandler((error: Any, _request: Any, reply: Any) => {
      reply.code(error.statusCode ?? 500).send({ message: error.message });
    });
    app.addHook('onSend', async (request: Any, reply: Any, payload: Any) => {
      const wants = /gzip/.test(request.headers['accept-encoding'] ?? '');
      if (!request.url.includes('/compressed') || !wants || payload === undefined) return payload;
      reply.header('content-encoding', 'gzip').removeHeader('content-length');
      return gzipSync(payload);
    });
    const scope = (request: Any): string | undefined => request.headers['x-user'];
    await app.register(turngateFastify, { gate: world.gate, scope });
    for (const route of routes) {
      app.route({
        method: (route.method ?? 'post').toUpperCase(),
        url: route.path,
        config: route.protect === false ? {} : { idempotency: route.options ?? true },
        handler: async (request: Any, reply: Any) => {
          const text = typeof request.body === 'string' ? request.body : '';
          const call = callOf(world, request.turngate?.tx, text, request);
          return sendReply(reply, await route.handle(call));
        },
      });
    }
    await app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = app.server.address() as AddressInfo;
    return {
      url: `http://127.0.0.1:${port}`,
      async close() {
        app.server.closeAllConnections();
        await app.close();
      },
    };
  },
};

function sendReply(reply: Any, made: Reply): unknown {
  reply.code(made.status ?? 200).headers(made.headers ?? {});
  if (made.stream !== undefined) return reply.send(Readable.from(chunksOf(made.stream)));
  return reply.send(bodyOf(made));
}
