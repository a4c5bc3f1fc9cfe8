/** Koa 3, with routes by hand. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import Koa from 'koa';
import { idempotency } from 'turngate/koa';
import { bodyOf, callOf, chunksOf, type Framework, type Reply } from '../world.ts';

// biome-ignore lint/suspicious/noExplicitAny: Koa has no types here.
type Any = any;

export const koaFramework: Framework = {
  name: 'koa',
  async start(world, routes) {
    const app: Any = new Koa();
    app.silent = true;
    app.use(async (ctx: Any, next: Any) => {
      try {
        await next();
      } catch (error) {
        const { status, message } = error as { status?: number; message: string };
        ctx.status = status ?? 500;
        ctx.body = { message };
      }
    });
    app.use(gzipOutside);
    for (const route of routes) {
      const matches = new RegExp(`^${route.path.replace(/:\w+/g, '[^/]+')}$`);
      const method = (route.method ?? 'post').toUpperCase();
      const guard: Any =
        route.protect === false
          ? (_ctx: Any, next: Any) => next()
          : idempotency(world.gate, {
              scope: (ctx: Any) => ctx.get('x-user') || undefined,
              ...route.options,
            });
      app.use(async (ctx: Any, next: Any) => {
        if (!matches.test(ctx.path)) return await next();
        if (ctx.method !== method && !(ctx.method === 'HEAD' && method === 'GET')) {
          return await next();
        }
        ctx._matchedRoute = route.path;
        await guard(ctx, async () => {
          let text = '';
          for await (const chunk of ctx.req) text += chunk;
          const call = callOf(world, ctx.state.turngate?.tx, text, ctx);
          sendReply(ctx, await route.handle(call));
        });
      });
    }
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
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

function sendReply(ctx: Any, reply: Reply): void {
  const body = bodyOf(reply);
  ctx.body = reply.stream === undefined ? (body ?? null) : Readable.from(chunksOf(reply.stream));
  ctx.status = reply.status ?? 200;
  for (const [name, value] of Object.entries(reply.headers ?? {})) ctx.set(name, value);
}

async function gzipOutside(ctx: Any, next: Any): Promise<void> {
  await next();
  const wants = /gzip/.test(ctx.get('accept-encoding'));
  if (!ctx.path.includes('/compressed') || !wants || !Buffer.isBuffer(ctx.body)) return;
  ctx.body = gzipSync(ctx.body);
  ctx.set('Content-Encoding', 'gzip');
}
