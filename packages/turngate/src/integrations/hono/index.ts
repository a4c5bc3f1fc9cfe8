/** Idempotency for Hono. Nothing of Hono is imported. */
import type { Gate } from '../../gate/gate.ts';
import { createHttpLayer, type HttpContext, type HttpLayer } from '../../http/layer.ts';
import {
  type HandlerResponse,
  type HttpRequest,
  type HttpResponse,
  nullBodyStatuses,
  type RequestBody,
} from '../../http/message.ts';
import type { HttpOptions } from '../../http/options.ts';
import { readWebBody, webHeaders, webResponse } from '../../http/web.ts';
import { isRefusal } from '../../idempotency/declaration.ts';

export type { HttpContext } from '../../http/layer.ts';
export type { HttpOptions } from '../../http/options.ts';

/** The slice of Hono's context that is used. */
export interface HonoContext {
  readonly req: {
    readonly method: string;
    readonly url: string;
    readonly routePath?: string;
    readonly raw: Request;
    readonly bodyCache?: object;
    header(name: string): string | undefined;
    arrayBuffer(): Promise<ArrayBuffer>;
  };
  get res(): Response;
  set res(response: Response | undefined);
  readonly error?: Error | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: typed by the application's own Variables.
  set(key: any, value: unknown): void;
}

/** A Hono middleware. */
export interface HonoIdempotency<Tx, Context> {
  (c: Context, next: () => Promise<void>): Promise<Response | undefined>;
  /** The layer behind it, for `layer.status()` of `inFlight: '202'`. */
  readonly layer: HttpLayer<Tx, Context>;
}

/** For `new Hono<{ Variables: TurngateVariables<Tx> }>()`. */
export interface TurngateVariables<Tx> {
  turngate: HttpContext<Tx> | undefined;
}

/**
 * Protects a route: `app.post('/orders', idempotency(gate, { scope: (c) => c.get('user').id }), …)`.
 * The handler finds the transaction at `c.get('turngate').tx`. Put compression outside, before it.
 *
 * @throws OPTION_INVALID
 */
export function idempotency<Tx, Context extends HonoContext = HonoContext>(
  gate: Gate<Tx>,
  options: HttpOptions<Context>,
): HonoIdempotency<Tx, Context> {
  const layer = createHttpLayer<Tx, Context>(gate, options);
  const middleware = async (
    c: Context,
    next: () => Promise<void>,
  ): Promise<Response | undefined> => {
    let ran = false;
    const run = async (context: HttpContext<Tx> | undefined): Promise<HandlerResponse> => {
      ran = true;
      c.set('turngate', context);
      await next();
      if (isRefusal(c.error)) throw c.error;
      return await handlerResponse(c, layer.policy.response);
    };
    const answer = await layer.handle(requestOf(c), run).catch((error: unknown) => {
      if (ran) c.res = undefined; // It was not to be: no cookie of it may leave.
      throw error;
    });
    if (answer.kind === 'pass') {
      await next();
      return undefined;
    }
    if (answer.kind === 'send') {
      const response = webResponse(answer.response);
      if (!ran) return response;
      replace(c, response);
      return undefined;
    }
    for (const [name, value] of Object.entries(answer.headers)) c.res.headers.set(name, value);
    return undefined;
  };
  return Object.assign(middleware, { layer });
}

/** The handler has answered already: a returned response would be ignored, and headers would mix. */
function replace(c: HonoContext, response: Response): void {
  for (const [name, value] of c.res.headers) {
    if (/^(access-control-.*|vary)$/i.test(name)) response.headers.append(name, value);
  }
  c.res = undefined;
  c.res = response;
}

/** A plain response, such as one of `layer.status()`, as a web Response. */
export function toResponse(response: HttpResponse): Response {
  return webResponse(response);
}

async function handlerResponse(
  c: HonoContext,
  mode: 'buffer' | 'stream',
): Promise<HandlerResponse> {
  const { status } = c.res;
  const headers = webHeaders(c.res.headers);
  if (c.res.body === null || nullBodyStatuses.has(status)) return { status, headers, body: null };
  const type = c.res.headers.get('content-type') ?? '';
  if (mode === 'stream' || /^text\/event-stream\b/i.test(type)) {
    return { status, headers, body: 'stream' };
  }
  const body = new Uint8Array(await c.res.clone().arrayBuffer());
  return { status, headers, body: body.length === 0 ? null : body };
}

function requestOf<Context extends HonoContext>(c: Context): HttpRequest<Context> {
  const { pathname, search } = new URL(c.req.url);
  return {
    method: c.req.method,
    route: c.req.routePath,
    url: pathname + search,
    native: c,
    header: (name) => c.req.header(name),
    readBody: (bytesMax) => readBody(c, bytesMax),
  };
}

async function readBody(c: HonoContext, bytesMax: number): Promise<RequestBody> {
  const { raw } = c.req;
  // An earlier middleware read it through Hono, which keeps what it read.
  if (raw.bodyUsed) return new Uint8Array(await c.req.arrayBuffer());
  return await readWebBody(raw, bytesMax);
}
