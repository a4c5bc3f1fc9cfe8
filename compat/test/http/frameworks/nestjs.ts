/** NestJS 12 on Express and on Fastify. Decorators are applied by hand: controllers come from data. */
import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import {
  Catch,
  Controller,
  Get,
  HttpException,
  Module,
  Options,
  Post,
  Put,
  Req,
  Res,
  StreamableFile,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Idempotent, TurngateModule } from 'turngate/nestjs';
import {
  bodyOf,
  callOf,
  chunksOf,
  type Framework,
  type Reply,
  type Route,
  type World,
} from '../world.ts';

// biome-ignore lint/suspicious/noExplicitAny: controllers are made from data.
type Any = any;

const verbs = { get: Get, post: Post, put: Put, options: Options };

function nestFramework(platform: 'express' | 'fastify'): Framework {
  return {
    name: `nestjs on ${platform}`,
    ...(platform === 'express'
      ? {}
      : {
          unable: {
            'L59: a compressor outside the layer codes first and repeat as each accepts':
              'its compressor is an onSend hook, so inside the held response',
          },
        }),
    async start(world, routes) {
      const adapter: Any =
        platform === 'express' ? new ExpressAdapter() : new FastifyAdapter({ bodyLimit: 2e7 });
      const root = moduleOf(world, routes, platform);
      const app: Any = await NestFactory.create(root, adapter, {
        logger: false,
        rawBody: true,
        bodyParser: platform === 'express',
      });
      if (platform === 'express') {
        app.useBodyParser('text', { type: () => true, limit: '20mb' });
        app.use(gzipOutside);
      } else readAnyBody(adapter.getInstance());
      app.useGlobalFilters(new (filterOf())());
      await app.listen(0, '127.0.0.1');
      const server = app.getHttpServer();
      const { port } = server.address() as AddressInfo;
      return {
        url: `http://127.0.0.1:${port}`,
        async close() {
          server.closeAllConnections();
          await app.close();
        },
      };
    },
  };
}

/** What Nest's own parser does with `rawBody: true`, for bodies that are not JSON. */
function readAnyBody(fastify: Any): void {
  fastify.removeAllContentTypeParsers();
  const parseAs = 'buffer';
  fastify.addContentTypeParser('*', { parseAs }, (request: Any, body: Any, done: Any) => {
    request.rawBody = body;
    done(null, String(body));
  });
}

function moduleOf(world: World, routes: readonly Route[], platform: string): Any {
  class Routes {}
  const prototype = Routes.prototype as Any;
  routes.forEach((route, i) => {
    const name = `route${i}`;
    prototype[name] = async (req: Any, res: Any): Promise<unknown> => {
      const text = textOf(req.rawBody ?? req.body);
      const reply = await route.handle(callOf(world, req.turngate?.tx, text, req));
      return nestValue(res, reply, platform);
    };
    const descriptor = Object.getOwnPropertyDescriptor(prototype, name) as PropertyDescriptor;
    verbs[route.method ?? 'post'](route.path)(prototype, name, descriptor);
    Req()(prototype, name, 0);
    Res({ passthrough: true })(prototype, name, 1);
    if (route.protect !== false) {
      Idempotent(route.options as Any)(prototype, name, descriptor);
    }
  });
  Controller()(Routes);
  class Root {}
  const scope = (req: Any): string | undefined => req.headers['x-user'];
  Module({
    imports: [TurngateModule.forRoot({ gate: world.gate, scope })],
    controllers: [Routes],
  })(Root);
  return Root;
}

function textOf(body: unknown): string {
  return typeof body === 'string' || Buffer.isBuffer(body) ? String(body) : '';
}

function nestValue(res: Any, reply: Reply, platform: string): unknown {
  res.status(reply.status ?? 200);
  const set = platform === 'express' ? 'set' : 'header';
  for (const [name, value] of Object.entries(reply.headers ?? {})) res[set](name, value);
  const type = String(reply.headers?.['content-type'] ?? 'application/octet-stream');
  if (reply.stream !== undefined) {
    return new StreamableFile(Readable.from(chunksOf(reply.stream)), { type });
  }
  const body = bodyOf(reply);
  if (body === undefined) return undefined;
  return new StreamableFile(body, { type });
}

/** Gives errors the status they carry, as an application's global filter would. */
function filterOf(): Any {
  class Filter {
    catch(error: Any, host: Any): void {
      const res = host.switchToHttp().getResponse();
      const status = error instanceof HttpException ? error.getStatus() : (error.status ?? 500);
      const body = { message: error.message };
      if (typeof res.code === 'function') res.code(status).send(body);
      else res.status(status).json(body);
    }
  }
  Catch()(Filter);
  return Filter;
}

function gzipOutside(req: Any, res: Any, next: Any): void {
  const wants = /gzip/.test(req.headers['accept-encoding'] ?? '');
  if (!req.url.includes('/compressed') || !wants) {
    next();
    return;
  }
  const end = res.end;
  const parts: Buffer[] = [];
  res.write = (chunk: Any) => parts.push(Buffer.from(chunk)) > 0;
  res.end = (chunk?: Any) => {
    if (chunk !== undefined && chunk !== null) parts.push(Buffer.from(chunk));
    res.setHeader('Content-Encoding', 'gzip');
    res.removeHeader('Content-Length');
    return end.call(res, gzipSync(Buffer.concat(parts)));
  };
  next();
}

export const nestFrameworks: readonly Framework[] = [
  nestFramework('express'),
  nestFramework('fastify'),
];
