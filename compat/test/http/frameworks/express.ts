/** Express 4 and 5, with the body parser behind the layer, before it keeping bytes, and before it. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import express5 from 'express';
import express4 from 'express4';
import { idempotency, keepRawBody } from 'turngate/express';
import { bodyOf, callOf, chunksOf, type Framework, type Reply, type Route } from '../world.ts';

// biome-ignore lint/suspicious/noExplicitAny: Express has no types here.
type Any = any;

type Parser = 'behind' | 'before, bytes kept' | 'before';

function expressFramework(express: Any, version: number, parser: Parser): Framework {
  return {
    name: `express ${version}, parser ${parser}`,
    // Where the parser sits matters to requests only.
    ...(parser === 'behind' ? {} : { only: 'requests' as const }),
    async start(world, routes) {
      const app: Any = express();
      app.set('env', 'test');
      app.use('/:experiment/compressed', gzipOutside);
      const parse = express.text({ type: () => true, limit: '20mb', ...verifyFor(parser) });
      const guard = (route: Route): Any =>
        route.protect === false
          ? (_req: Any, _res: Any, next: Any) => next()
          : idempotency(world.gate, { scope: (req: Any) => req.get('x-user'), ...route.options });
      for (const route of routes) {
        const handler = (req: Any, res: Any, next: Any): void => {
          const text = typeof req.body === 'string' ? req.body : '';
          Promise.resolve(route.handle(callOf(world, req.turngate?.tx, text, req)))
            .then((reply) => sendReply(res, reply))
            .catch((error: unknown) => next(error));
        };
        const order = parser === 'behind' ? [guard(route), parse] : [parse, guard(route)];
        app[route.method ?? 'post'](route.path, ...order, handler);
      }
      app.use((error: Any, _req: Any, res: Any, _next: Any) => {
        res.status(error.status ?? 500).json({ message: error.message });
      });
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
}

function verifyFor(parser: Parser): object {
  return parser === 'before, bytes kept' ? { verify: keepRawBody } : {};
}

function sendReply(res: Any, reply: Reply): void {
  res.status(reply.status ?? 200);
  for (const [name, value] of Object.entries(reply.headers ?? {})) res.set(name, value);
  if (reply.stream !== undefined) {
    Readable.from(chunksOf(reply.stream)).pipe(res);
    return;
  }
  const body = bodyOf(reply);
  if (body === undefined) res.end();
  else res.send(body);
}

/** A compressor that wraps end() the way the usual middleware does, outside the layer. */
function gzipOutside(req: Any, res: Any, next: Any): void {
  if (!/gzip/.test(req.headers['accept-encoding'] ?? '')) {
    next();
    return;
  }
  const end = res.end;
  res.end = (chunk?: Any, ...rest: Any[]) => {
    if (chunk === undefined) return end.call(res, chunk, ...rest);
    res.setHeader('Content-Encoding', 'gzip');
    res.removeHeader('Content-Length');
    return end.call(res, gzipSync(Buffer.from(chunk)));
  };
  next();
}

export const expressFrameworks: readonly Framework[] = [
  expressFramework(express5, 5, 'behind'),
  expressFramework(express5, 5, 'before, bytes kept'),
  expressFramework(express4, 4, 'behind'),
  expressFramework(express4, 4, 'before'),
];
