/** Hono on Node. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { compress } from 'hono/compress';
import { idempotency } from 'turngate/hono';
import { bodyOf, callOf, chunksOf, type Framework, type Reply } from '../world.ts';

// biome-ignore lint/suspicious/noExplicitAny: routes are made from data.
type Any = any;

export const honoFramework: Framework = {
  name: 'hono',
  unable: {
    'two halves of a quoted string in two headers are not one key':
      'the web Headers object has joined them before anybody can look',
  },
  async start(world, routes) {
    const app: Any = new Hono();
    app.use('/:experiment/compressed', compress());
    app.onError((error: Any, c: Any) => c.json({ message: error.message }, error.status ?? 500));
    for (const route of routes) {
      const guard =
        route.protect === false
          ? (_c: Any, next: Any) => next()
          : idempotency(world.gate, {
              scope: (c: Any) => c.req.header('x-user'),
              ...route.options,
            });
      app.on((route.method ?? 'post').toUpperCase(), route.path, guard, async (c: Any) => {
        const call = callOf(world, c.get('turngate')?.tx, await c.req.text(), c);
        return responseOf(await route.handle(call));
      });
    }
    const server: Any = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
    if (!server.listening) await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return {
      url: `http://127.0.0.1:${port}`,
      async close() {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  },
};

function responseOf(reply: Reply): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(reply.headers ?? {})) {
    for (const one of [value].flat()) headers.append(name, one as string);
  }
  const status = reply.status ?? 200;
  if (reply.stream !== undefined) {
    const body = ReadableStream.from(chunksOf(reply.stream)) as ReadableStream;
    return new Response(body, { status, headers });
  }
  return new Response(bodyOf(reply) ?? null, { status, headers });
}
