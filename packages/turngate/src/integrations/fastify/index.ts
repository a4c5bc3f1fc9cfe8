/** Idempotency for Fastify 5, as a plugin. Nothing of Fastify is imported. */
import { Readable } from 'node:stream';
import { isTurngateError } from '../../core/errors.ts';
import type { Gate } from '../../gate/gate.ts';
import { createHttpLayer, type HttpContext, type HttpLayer } from '../../http/layer.ts';
import { type HttpRequest, type HttpResponse, headerRecord } from '../../http/message.ts';
import { handleNode } from '../../http/node-exchange.ts';
import {
  keepRawBody,
  type NodeRequest,
  nodeHeader,
  readNodeBody,
} from '../../http/node-request.ts';
import { type NodeResponse, sendNode } from '../../http/node-send.ts';
import type { HttpOptions } from '../../http/options.ts';
import { collectBody } from './collect-body.ts';

export type { HttpContext } from '../../http/layer.ts';
export type { HttpOptions } from '../../http/options.ts';

/** The slice of Fastify's request that is used. */
export interface FastifyRequestLike {
  readonly method: string;
  readonly raw: NodeRequest & { readonly url?: string | undefined };
  readonly originalUrl?: string;
  readonly body?: unknown;
  readonly rawBody?: unknown;
  readonly routeOptions?: { readonly url?: string | undefined };
  turngate?: HttpContext<unknown> | undefined;
}

/** The slice of Fastify's reply that is used. */
export interface FastifyReplyLike {
  readonly raw: NodeResponse;
  code(status: number): unknown;
  headers(values: Record<string, unknown>): unknown;
  getHeaders(): Record<string, unknown>;
  removeHeader(name: string): unknown;
  hijack(): unknown;
  send(payload?: unknown): unknown;
}

/** The slice of a Fastify instance that is used. */
export interface FastifyLike {
  decorateRequest(name: string, value?: unknown): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: Fastify's overloads by hook name.
  addHook(name: any, hook: any): unknown;
}

/** Options of the plugin: the gate, and defaults for every route's `config.idempotency`. */
export interface FastifyIdempotencyOptions<Tx, Req extends FastifyRequestLike = FastifyRequestLike>
  extends HttpOptions<Req> {
  readonly gate: Gate<Tx>;
}

interface RouteLike {
  readonly url: string;
  readonly config?: { readonly idempotency?: unknown } | undefined;
  preParsing?: unknown;
  preHandler?: unknown;
}

/**
 * Protects the routes that say so: after `app.register(turngateFastify, { gate, scope })`, a route
 * with `config: { idempotency: true }`, or with options of its own there. The handler finds the
 * transaction at `request.turngate.tx`. Register it before the routes.
 *
 * It claims after all other `preHandler` hooks, so authentication and validation come first, and
 * holds the raw response back, so `onSend` hooks, error handlers and streams keep their meaning.
 * Fingerprints are over the raw bytes, which it keeps while Fastify parses them.
 *
 * @throws OPTION_INVALID when a route is added with bad options
 */
export function turngateFastify<Tx, Req extends FastifyRequestLike = FastifyRequestLike>(
  app: FastifyLike,
  options: FastifyIdempotencyOptions<Tx, Req>,
  done: (error?: Error) => void,
): void {
  const { gate, ...defaults } = options;
  app.decorateRequest('turngate', undefined);
  app.addHook('onRoute', (route: RouteLike) => {
    const given = route.config?.idempotency;
    if (given === undefined || given === false) return;
    const own = given === true ? {} : (given as HttpOptions<Req>);
    const layer = createHttpLayer<Tx, Req>(gate, { ...defaults, ...own });
    route.preParsing = [...list(route.preParsing), keepBytes(layer)];
    route.preHandler = [...list(route.preHandler), protect(layer)];
  });
  done();
}

// What `fastify-plugin` would set: decorators and hooks leave the plugin's own scope.
Object.assign(turngateFastify, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'turngate',
  [Symbol.for('plugin-meta')]: { name: 'turngate', fastify: '5.x' },
});

function list(hooks: unknown): readonly unknown[] {
  return hooks === undefined ? [] : [hooks].flat();
}

function protect<Tx, Req extends FastifyRequestLike>(layer: HttpLayer<Tx, Req>): unknown {
  return (request: Req, reply: FastifyReplyLike, next: (error?: unknown) => void): void => {
    const start = (context: HttpContext<Tx> | undefined): void => {
      request.turngate = context;
      next();
    };
    const sendIt = (response: HttpResponse): void => send(reply, response);
    const headersBefore = { ...reply.getHeaders() };
    const fail = (error: unknown): void => {
      // No cookie of an answer that was not to be may leave with the error.
      for (const name of Object.keys(reply.getHeaders())) {
        if (!(name in headersBefore)) reply.removeHeader(name);
      }
      reply.headers(headersBefore);
      reply.send(error); // To the application's error handler.
    };
    const ways = { sendWithoutHandler: sendIt, onLateError: fail };
    handleNode(layer, requestOf(request), reply.raw, start, ways).then((result) => {
      if (result === 'pass') next();
    }, next);
  };
}

/** Reads the body before the parsers, up to the route's cap, and gives them what it read. */
function keepBytes<Tx, Req extends FastifyRequestLike>(layer: HttpLayer<Tx, Req>): unknown {
  return async (request: Req, reply: FastifyReplyLike, payload: Readable): Promise<unknown> => {
    const { policy } = layer;
    const hasKey = request.raw.headers[policy.header] !== undefined;
    if (!hasKey || !policy.methods.has(request.method)) return payload;
    let bytes: Buffer;
    try {
      bytes = await collectBody(payload, request.raw.headers, policy.bodyBytesMax);
    } catch (error) {
      const response = isTurngateError(error) ? layer.problem(error) : undefined;
      if (response === undefined) throw error;
      send(reply, response);
      return payload;
    }
    keepRawBody(request.raw, undefined, bytes);
    return Object.assign(Readable.from(bytes.length === 0 ? [] : [bytes]), {
      receivedEncodedLength: bytes.length,
    });
  };
}

/** Sends a plain response, such as one of `layer.status()`, through Fastify and its hooks. */
export function send(reply: FastifyReplyLike, response: HttpResponse): void {
  const { status, headers, body } = response;
  const isTyped = headers.some(([name]) => name.toLowerCase() === 'content-type');
  if (body !== null && body.length > 0 && !isTyped) {
    // Fastify would make up a content type.
    reply.hijack();
    const before = Object.entries(reply.getHeaders()) as [string, string][];
    sendNode(reply.raw, { status, headers: [...before, ...headers], body });
    return;
  }
  reply.code(status);
  reply.headers(headerRecord(headers));
  reply.send(body === null || body.length === 0 ? undefined : Buffer.from(body));
}

function requestOf<Req extends FastifyRequestLike>(request: Req): HttpRequest<Req> {
  return {
    method: request.method,
    route: request.routeOptions?.url,
    url: request.originalUrl ?? request.raw.url ?? '',
    native: request,
    header: (name) => nodeHeader(request.raw, name),
    readBody: (bytesMax) => readNodeBody(request.raw, bytesMax, request),
  };
}
