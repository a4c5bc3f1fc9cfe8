/** Idempotency for Express 4 and 5. Nothing of Express is imported. */
import type { Gate } from '../../gate/gate.ts';
import { createHttpLayer, type HttpContext, type HttpLayer } from '../../http/layer.ts';
import {
  type HandlerResponse,
  type HttpRequest,
  type HttpResponse,
  headerValue,
} from '../../http/message.ts';
import { handleNode } from '../../http/node-exchange.ts';
import { type NodeRequest, nodeHeader, readNodeBody } from '../../http/node-request.ts';
import { type NodeResponse, sendNode } from '../../http/node-send.ts';
import type { HttpOptions } from '../../http/options.ts';

export type { HttpContext } from '../../http/layer.ts';
export { keepRawBody } from '../../http/node-request.ts';
export type { HttpOptions } from '../../http/options.ts';

/** The slice of Express' request that is used. */
export interface ExpressRequest extends NodeRequest {
  readonly originalUrl: string;
  readonly route?: { readonly path?: unknown } | undefined;
  /** Set for handlers behind the middleware; undefined for a request the layer let pass. */
  turngate?: HttpContext<unknown> | undefined;
}

/** An Express middleware; also usable as `app.use(…)`, where no route template is known yet. */
export interface ExpressIdempotency<Tx, Req> {
  (req: Req, res: NodeResponse, next: (error?: unknown) => void): void;
  /** The layer behind it, for `layer.status()` of `inFlight: '202'`. */
  readonly layer: HttpLayer<Tx, Req>;
}

/**
 * Protects a route: `app.post('/orders', idempotency(gate, { scope: (req) => req.user.id }), handler)`.
 * The handler finds the transaction at `req.turngate.tx` and must end its response on every path:
 * a handler that never answers holds its transaction.
 *
 * Body: placed before the body parser it reads the raw bytes and puts them back; behind one, give
 * the parser `verify: keepRawBody`, or the parsed value is compared. Compression may sit before
 * (outside) or behind.
 *
 * @throws OPTION_INVALID
 */
export function idempotency<Tx, Req extends ExpressRequest = ExpressRequest>(
  gate: Gate<Tx>,
  options: HttpOptions<Req>,
): ExpressIdempotency<Tx, Req> {
  const layer = createHttpLayer<Tx, Req>(gate, options);
  const middleware = (req: Req, res: NodeResponse, next: (error?: unknown) => void): void => {
    const start = (context: HttpContext<Tx> | undefined): void => {
      req.turngate = context;
      next();
    };
    handleNode(layer, requestOf(req), res, start, { isUnanswered }).then((result) => {
      if (result === 'pass') next();
    }, next);
  };
  return Object.assign(middleware, { layer });
}

/** The 404 that Express writes when no handler has answered; a route may be there tomorrow. */
function isUnanswered({ status, headers, body }: HandlerResponse): boolean {
  if (status !== 404 || !(body instanceof Uint8Array)) return false;
  const byExpress = headerValue(headers, 'content-security-policy') === "default-src 'none'";
  return byExpress && Buffer.from(body).includes('<pre>Cannot ');
}

/** Sends a plain response, such as one of `layer.status()`, through Express. */
export function send(res: NodeResponse, response: HttpResponse): void {
  sendNode(res, response);
}

function requestOf<Req extends ExpressRequest>(req: Req): HttpRequest<Req> {
  const path = req.route?.path;
  return {
    method: req.method ?? 'GET',
    route: path === undefined ? undefined : String(path),
    url: req.originalUrl,
    native: req,
    header: (name) => nodeHeader(req, name),
    readBody: (bytesMax) => readNodeBody(req, bytesMax),
  };
}
