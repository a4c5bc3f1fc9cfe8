/** Idempotency for Koa. Nothing of Koa is imported. */
import { TurngateError } from '../../core/errors.ts';
import type { Gate } from '../../gate/gate.ts';
import { bodyBytes } from '../../http/body-bytes.ts';
import { createHttpLayer, type HttpContext, type HttpLayer } from '../../http/layer.ts';
import {
  type HandlerResponse,
  type HttpRequest,
  type HttpResponse,
  headerLines,
  headerRecord,
} from '../../http/message.ts';
import { type NodeRequest, nodeHeader, readNodeBody } from '../../http/node-request.ts';
import type { HttpOptions } from '../../http/options.ts';

export type { HttpContext } from '../../http/layer.ts';
export { keepRawBody } from '../../http/node-request.ts';
export type { HttpOptions } from '../../http/options.ts';

/** The slice of Koa's context that is used. */
export interface KoaContext {
  readonly method: string;
  readonly originalUrl: string;
  readonly req: NodeRequest;
  readonly request: { readonly body?: unknown; readonly rawBody?: unknown };
  readonly response: { readonly headers: Record<string, unknown> };
  readonly state: Record<string, unknown>;
  /** The route's template as `@koa/router` leaves it. */
  readonly _matchedRoute?: unknown;
  status: number;
  readonly message: string;
  body: unknown;
  respond?: boolean | undefined;
  set(name: string, value: string | string[]): void;
  remove(name: string): void;
}

/** A Koa middleware. */
export interface KoaIdempotency<Tx, Context> {
  (ctx: Context, next: () => Promise<unknown>): Promise<void>;
  /** The layer behind it, for `layer.status()` of `inFlight: '202'`. */
  readonly layer: HttpLayer<Tx, Context>;
}

/**
 * Protects what comes after it: `router.post('/orders', idempotency(gate, { scope }), handler)`.
 * The handler finds the transaction at `ctx.state.turngate.tx`. Put compression outside, before it.
 *
 * An error that is thrown leaves the layer as an exception, so its key is freed whatever its status;
 * set `ctx.status` and `ctx.body` for a "no" that shall be kept, or throw `refuse(…)`.
 *
 * @throws OPTION_INVALID
 */
export function idempotency<Tx, Context extends KoaContext = KoaContext>(
  gate: Gate<Tx>,
  options: HttpOptions<Context>,
): KoaIdempotency<Tx, Context> {
  const layer = createHttpLayer<Tx, Context>(gate, options);
  const middleware = async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const headersBefore = { ...ctx.response.headers };
    let answered = false;
    const run = async (context: HttpContext<Tx> | undefined): Promise<HandlerResponse> => {
      ctx.state['turngate'] = context;
      await next();
      answered = true;
      return await handlerResponse(ctx, layer.policy.response);
    };
    const answer = await layer.handle(requestOf(ctx), run).catch((error: unknown) => {
      if (answered) resetHeaders(ctx, headersBefore); // It was not to be: no cookie of it may leave.
      throw error;
    });
    if (answer.kind === 'pass') await next();
    else if (answer.kind === 'send') send(ctx, answer.response, headersBefore);
    else for (const [name, value] of Object.entries(answer.headers)) ctx.set(name, value);
  };
  return Object.assign(middleware, { layer });
}

/** Puts a plain response, such as one of `layer.status()`, into a context. */
export function send(
  ctx: KoaContext,
  response: HttpResponse,
  headersBefore: Readonly<Record<string, unknown>> = ctx.response.headers,
): void {
  resetHeaders(ctx, headersBefore);
  const { status, headers, body } = response;
  // Koa changes status and type when it gets a body: they come after it.
  ctx.body = body === null ? null : Buffer.from(body);
  ctx.status = status;
  ctx.remove('Content-Type');
  for (const [name, value] of Object.entries(headerRecord(headers))) ctx.set(name, value);
}

function resetHeaders(ctx: KoaContext, before: Readonly<Record<string, unknown>>): void {
  for (const name of Object.keys(ctx.response.headers)) if (!(name in before)) ctx.remove(name);
  for (const [name, value] of Object.entries(before)) ctx.set(name, value as string);
}

async function handlerResponse(
  ctx: KoaContext,
  mode: 'buffer' | 'stream',
): Promise<HandlerResponse> {
  if (ctx.respond === false) {
    const message = 'ctx.respond = false writes past the idempotency layer, before the commit';
    throw new TurngateError('OPTION_INVALID', message);
  }
  const { status } = ctx;
  const { _explicitNullBody, _explicitStatus } = ctx.response as Record<string, unknown>;
  const isImplicit = ctx.body === undefined || (ctx.body === null && _explicitNullBody !== true);
  const unanswered = isImplicit && status === 404 && _explicitStatus !== true;
  // Koa would send the status text by itself; said here, it is stored too.
  if (isImplicit && !isEmptyStatus(status)) {
    ctx.body = ctx.message || String(status);
    ctx.status = status;
  }
  const headers = headerLines(ctx.response.headers);
  const type = String(ctx.response.headers['content-type'] ?? '');
  if (mode === 'stream' || /^text\/event-stream\b/i.test(type)) {
    return { status, headers, body: 'stream' };
  }
  const body = await bodyBytes(ctx.body);
  if (isStream(ctx.body) && body !== null) {
    ctx.body = Buffer.from(body); // It can be read once only.
    for (const [name, value] of headers) if (/^content-type$/i.test(name)) ctx.set(name, value);
    ctx.status = status;
  }
  return { status, headers, body, ...(unanswered ? { unanswered } : {}) };
}

function isEmptyStatus(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

function isStream(body: unknown): boolean {
  if (typeof body !== 'object' || body === null || body instanceof Uint8Array) return false;
  return 'pipe' in body || 'getReader' in body || body instanceof Blob || body instanceof Response;
}

function requestOf<Context extends KoaContext>(ctx: Context): HttpRequest<Context> {
  const template = ctx._matchedRoute;
  return {
    method: ctx.method,
    route: template === undefined ? undefined : String(template),
    url: ctx.originalUrl,
    native: ctx,
    header: (name) => nodeHeader(ctx.req, name),
    readBody: (bytesMax) => readNodeBody(ctx.req, bytesMax, ctx.request),
  };
}
