/**
 * The interceptor. It sits behind guards and before filters, but takes the answer from the raw
 * response, so what is stored is what pipes, filters and other interceptors finally made of it.
 */
import type { Gate } from '../../gate/gate.ts';
import { createHttpLayer, type HttpContext, type HttpLayer } from '../../http/layer.ts';
import {
  type HeaderLines,
  type HttpRequest,
  type HttpResponse,
  headerLines,
} from '../../http/message.ts';
import { handleNode } from '../../http/node-exchange.ts';
import { type NodeRequest, nodeHeader, readNodeBody } from '../../http/node-request.ts';
import { HeldResponse } from '../../http/node-response.ts';
import type { NodeResponse } from '../../http/node-send.ts';
import type { HttpOptions } from '../../http/options.ts';
import { optionsOf } from './decorator.ts';

/** The slice of a request that is used, of Express or Fastify. */
export interface NestRequest {
  readonly method?: string;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly originalUrl?: string;
  readonly url?: string;
  readonly body?: unknown;
  readonly rawBody?: unknown;
  /** Fastify's way to the Node request. */
  readonly raw?: NodeRequest;
  readonly route?: { readonly path?: unknown };
  readonly routeOptions?: { readonly url?: string };
  turngate?: HttpContext<unknown> | undefined;
}

/** The gate, and defaults for all `@Idempotent()` handlers. */
export interface NestIdempotencyOptions<Tx, Req = NestRequest> extends HttpOptions<Req> {
  readonly gate: Gate<Tx>;
}

/** The slice of Nest's ExecutionContext that is used. */
export interface NestContext {
  getType(): string;
  getHandler(): object;
  getClass(): object;
  switchToHttp(): { getRequest<T>(): T; getResponse<T>(): T };
}

/** The slice of Nest's CallHandler that is used. */
export interface NestNext {
  handle(): {
    subscribe(observer: {
      next(value: unknown): void;
      error(error: unknown): void;
      complete(): void;
    }): unknown;
  };
}

type NestResponse = NodeResponse & {
  readonly raw?: NodeResponse;
  getHeaders(): Record<string, unknown>;
};

/**
 * Runs `@Idempotent()` handlers through the layer; others, and contexts that are not HTTP, are left
 * alone. The handler finds the transaction at `request.turngate.tx` (see `turngateOf`).
 */
export class IdempotencyInterceptor<Tx, Req extends NestRequest = NestRequest> {
  private readonly gate: Gate<Tx>;
  private readonly defaults: HttpOptions<Req>;
  private readonly layers = new WeakMap<object, HttpLayer<Tx, Req>>();

  /** @throws OPTION_INVALID */
  constructor(options: NestIdempotencyOptions<Tx, Req>) {
    const { gate, ...defaults } = options;
    this.gate = gate;
    this.defaults = defaults;
    createHttpLayer(gate, defaults); // Bad options fail at start-up, not at the first request.
  }

  /** Any value Nest merges will do for an Observable: a list with the handler's value. */
  // biome-ignore lint/suspicious/noExplicitAny: Nest's type is RxJS' Observable, which is not imported.
  async intercept(context: NestContext, next: NestNext): Promise<any> {
    const layer = context.getType() === 'http' ? this.layerOf(context) : undefined;
    if (layer === undefined) return next.handle();
    const http = context.switchToHttp();
    const req = http.getRequest<Req>();
    const response = http.getResponse<NestResponse>();
    const raw = response.raw ?? response;
    // Fastify keeps headers set so far, such as CORS, on its reply and not on the raw response.
    const before = response === raw ? [] : headerLines(response.getHeaders());
    return await new Promise<unknown>((resolve, reject) => {
      const start = (given: HttpContext<Tx> | undefined): void => {
        req.turngate = given;
        lastValue(next).then((value) => resolve([value]), reject);
      };
      const sendIt = (answer: HttpResponse): void => {
        sendUnseen(raw, before, answer);
        resolve([undefined]); // Nest answers now, into the void.
      };
      const fail = (): void => sendUnseen(raw, before, internalError);
      const ways = { sendWithoutHandler: sendIt, onLateError: fail };
      handleNode(layer, requestOf(req), raw, start, ways).then((result) => {
        if (result === 'pass') resolve(next.handle());
      }, reject);
    });
  }

  private layerOf(context: NestContext): HttpLayer<Tx, Req> | undefined {
    const handler = context.getHandler();
    const known = this.layers.get(handler);
    if (known !== undefined) return known;
    const own = optionsOf(handler, context.getClass()) as Partial<HttpOptions<Req>> | undefined;
    if (own === undefined) return undefined;
    const layer = createHttpLayer<Tx, Req>(this.gate, { ...this.defaults, ...own });
    this.layers.set(handler, layer);
    return layer;
  }
}

// Filters have had their turn. The error itself is told by the event `released`.
const internalError: HttpResponse = {
  status: 500,
  headers: [['Content-Type', 'application/problem+json']],
  body: Buffer.from(
    JSON.stringify({ title: 'Internal Server Error', status: 500, outcome: 'not-applied' }),
  ),
};

function sendUnseen(raw: NodeResponse, before: HeaderLines, answer: HttpResponse): void {
  const held = new HeldResponse(raw, 'buffer');
  held.replaceUnseen({ ...answer, headers: [...before, ...answer.headers] });
}

function lastValue(next: NestNext): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let last: unknown;
    next.handle().subscribe({
      next: (value) => {
        last = value;
      },
      error: reject,
      complete: () => resolve(last),
    });
  });
}

function requestOf<Req extends NestRequest>(req: Req): HttpRequest<Req> {
  const raw = req.raw ?? (req as unknown as NodeRequest);
  const template = req.routeOptions?.url ?? req.route?.path;
  return {
    method: req.method ?? 'GET',
    route: template === undefined ? undefined : String(template),
    url: req.originalUrl ?? req.url ?? '',
    native: req,
    header: (name) => nodeHeader(raw, name),
    readBody: (bytesMax) => readNodeBody(raw, bytesMax, req),
  };
}
