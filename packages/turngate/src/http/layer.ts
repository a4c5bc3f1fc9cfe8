/**
 * The Idempotency-Key protocol for one route, over plain values. A framework's adapter turns its
 * request into an {@link HttpRequest}, gives a function that runs the handler and holds its answer
 * back, and sends what `handle` says.
 */
import { isTurngateError, TurngateError } from '../core/errors.ts';
import { fingerprintOf } from '../core/fingerprint.ts';
import { functionOption } from '../core/option.ts';
import {
  checkScope,
  globalScope,
  partProblem,
  type RecordId,
  recordIdText,
} from '../core/record-id.ts';
import type { Gate } from '../gate/gate.ts';
import type { OperationContext } from '../idempotency/declaration.ts';
import type { Outcome } from '../idempotency/outcome.ts';
import { emit } from '../runtime/events.ts';
import { systemRuntime } from '../runtime/runtime.ts';
import {
  acceptedResponse,
  outcomeHeader,
  problemResponse,
  replayResponse,
  storedOutcome,
} from './answers.ts';
import { Exchange, Released, type RunHandler, unseal } from './exchange.ts';
import { parseIdempotencyKey } from './idempotency-key.ts';
import {
  isRouteOperation,
  operationNameOf,
  payloadInvalid,
  payloadOf,
  payloadTooLarge,
  recordKeyOf,
} from './identity.ts';
import { type HttpRequest, type HttpResponse, headerValue } from './message.ts';
import { operationFor } from './operations.ts';
import { checkHttpOptions, type HttpOptions, type HttpPolicy } from './options.ts';
import { ticketOf, ticketParts, unknownTicket } from './ticket.ts';

/** What handlers find at `turngate` on their request or context. */
export interface HttpContext<Tx> {
  /** The transaction the record commits in. What is written elsewhere is not protected. */
  readonly tx: Tx;
  /** Aborts when the gate closes. */
  readonly signal: AbortSignal;
  readonly scope: string;
  /** The client's key. */
  readonly key: string;
}

/**
 * What the adapter has to do. `pass`: run the handler as if the layer were not there. `handler`: send
 * the handler's own answer, with these headers added. `send`: send this and nothing of the handler's.
 */
export type HttpAnswer =
  | { readonly kind: 'pass' }
  | { readonly kind: 'handler'; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'send'; readonly response: HttpResponse };

/** How a handler is run by {@link HttpLayer.handle}. */
export interface HandleOptions {
  /** May the handler run again after a deadlock was rolled back? Default false: 503 instead. */
  readonly repeatable?: boolean;
}

/** One protected route, or several with the same options. */
export interface HttpLayer<Tx, Native> {
  readonly policy: HttpPolicy<Native>;
  /** Answers one request. Errors the handler threw are thrown again, after the rollback. */
  handle(
    request: HttpRequest<Native>,
    run: (context: HttpContext<Tx> | undefined) => ReturnType<RunHandler<Tx>>,
    options?: HandleOptions,
  ): Promise<HttpAnswer>;
  /**
   * Answers a status URL of `inFlight: '202'`: the first answer, 202 while it runs, or 404. Find the
   * scope from the *asking* request's credentials: a ticket is no secret.
   */
  status(ticket: string, scope?: string): Promise<HttpResponse>;
  /** The problem response of a Turngate error; undefined for any other error. */
  problem(error: unknown): HttpResponse | undefined;
}

interface Entry {
  readonly operation: string;
  readonly scope: string;
  readonly key: string;
  readonly clientKey: string;
  readonly fingerprint: string;
}

/**
 * Makes the layer for a route.
 *
 * @throws OPTION_INVALID
 */
export function createHttpLayer<Tx, Native>(
  gate: Gate<Tx>,
  options: HttpOptions<Native>,
): HttpLayer<Tx, Native> {
  functionOption('gate.operation', gate?.operation);
  return new Layer(gate, checkHttpOptions(options));
}

class Layer<Tx, Native> implements HttpLayer<Tx, Native> {
  readonly policy: HttpPolicy<Native>;
  private readonly gate: Gate<Tx>;
  private readonly runtime = systemRuntime;

  constructor(gate: Gate<Tx>, policy: HttpPolicy<Native>) {
    this.gate = gate;
    this.policy = policy;
  }

  async handle(
    request: HttpRequest<Native>,
    run: (context: HttpContext<Tx> | undefined) => ReturnType<RunHandler<Tx>>,
    options: HandleOptions = {},
  ): Promise<HttpAnswer> {
    let entry: Entry | undefined;
    try {
      entry = await this.enter(request);
    } catch (error) {
      return this.answer(error);
    }
    if (entry === undefined) return { kind: 'pass' };
    const { clientKey } = entry;
    const handler: RunHandler<Tx> = ({ tx, signal, scope }) =>
      run({ tx, signal, scope, key: clientKey });
    const { policy } = this;
    const exchange = new Exchange(policy, request.native, handler, options.repeatable ?? false);
    try {
      return await this.work(entry, exchange);
    } catch (error) {
      if (policy.failOpen && !exchange.began && isTurngateError(error, 'STORE_UNAVAILABLE')) {
        const { operation, scope, key } = entry;
        emit('idempotency', { operation, scope, key, type: 'unprotected', error });
        await run(undefined);
        return { kind: 'handler', headers: {} };
      }
      return this.failed(error, exchange, request, entry);
    }
  }

  /** Identity and fingerprint, frozen before the handler sees the request; undefined: not for us. */
  private async enter(request: HttpRequest<Native>): Promise<Entry | undefined> {
    const { policy } = this;
    const method = request.method.toUpperCase();
    if (!policy.methods.has(method)) return undefined;
    const header = request.header(policy.header);
    if (header === undefined && !policy.required) return undefined;
    const clientKey = parseIdempotencyKey(header);
    const scope = this.scopeOf(request.native);
    const body = await request.readBody(policy.bodyBytesMax);
    if (body instanceof Uint8Array && body.length > policy.bodyBytesMax) {
      throw payloadTooLarge(policy.bodyBytesMax);
    }
    let fingerprint: string;
    try {
      fingerprint = fingerprintOf(payloadOf(policy.fingerprint, request.native, body));
    } catch (error) {
      throw isTurngateError(error, 'OPTION_INVALID') ? payloadInvalid(error) : error;
    }
    const key = recordKeyOf(request, clientKey);
    const operation = policy.name ?? operationNameOf(method, request.route);
    return { operation, scope, key, clientKey, fingerprint };
  }

  private scopeOf(native: Native): string {
    if (this.policy.scope === undefined) return globalScope;
    const scope = this.policy.scope(native);
    if (scope === undefined || scope === null || (typeof scope === 'string' && !scope.trim())) {
      const message = 'the request has no scope: nobody the key could belong to';
      throw new TurngateError('IDEMPOTENCY_SCOPE_MISSING', message);
    }
    if (typeof scope !== 'string') return checkScope(scope);
    // A string came out of the request: what is wrong with it is the sender's to hear.
    const why = partProblem(scope);
    if (why === undefined) return scope;
    throw new TurngateError('IDEMPOTENCY_SCOPE_INVALID', `the scope must be ${why}`);
  }

  private async work(entry: Entry, exchange: Exchange<Tx, Native>): Promise<HttpAnswer> {
    const { operation: name, scope, key, fingerprint } = entry;
    const operation = operationFor(this.gate, name, this.policy);
    const work = (context: OperationContext<Tx>): Promise<unknown> => exchange.run(name, context);
    const outcome = await operation({ scope, key, fingerprint, run: work });
    if (!outcome.replayed) return handlerAnswer(storedOutcome(exchange.status as number));
    return { kind: 'send', response: await this.replay({ operation: name, scope, key }, outcome) };
  }

  private async replay(id: RecordId, outcome: Outcome<unknown>): Promise<HttpResponse> {
    const stored = await unseal(this.policy, outcome.value, recordIdText(id));
    return replayResponse(this.policy, this.runtime, stored, outcome);
  }

  private failed(
    error: unknown,
    exchange: Exchange<Tx, Native>,
    request: HttpRequest<Native>,
    entry: Entry,
  ): HttpAnswer {
    if (error instanceof Released) {
      if (error.owner === exchange) return handlerAnswer('not-applied');
      // Whoever waited for the same work gets the same answer, without what was meant for one client.
      const { status, headers, body } = error.shared.response;
      const said = [outcomeHeader, 'not-applied'] as const;
      return { kind: 'send', response: { status, headers: [...headers, said], body } };
    }
    const { statusUrl, inFlight } = this.policy;
    if (inFlight === '202' && isTurngateError(error, 'REQUEST_IN_PROGRESS')) {
      const url = statusUrl?.(ticketOf(entry), request.native);
      const waiting = this.problem(error) as HttpResponse;
      const retryAfter = headerValue(waiting.headers, 'retry-after');
      return { kind: 'send', response: acceptedResponse(url, retryAfter) };
    }
    const isHandlers = exchange.failure !== undefined && exchange.failure.error === error;
    if (isHandlers && !isTurngateError(error, 'REFUSED')) throw error;
    return this.answer(error);
  }

  problem(error: unknown): HttpResponse | undefined {
    return problemResponse(this.policy, this.runtime, error);
  }

  private answer(error: unknown): HttpAnswer {
    const response = this.problem(error);
    if (response === undefined) throw error;
    return { kind: 'send', response };
  }

  async status(ticket: string, scope: string = globalScope): Promise<HttpResponse> {
    const parts = ticketParts(ticket);
    if (parts === undefined || !this.issues(parts.operation)) return unknownTicket();
    const { operation, key, fingerprint } = parts;
    const id = { operation, scope, key };
    try {
      const outcome = await this.gate.lookUp(id, fingerprintOf(fingerprint)); // As the operation does.
      return outcome === undefined ? unknownTicket() : await this.replay(id, outcome);
    } catch (error) {
      const response = this.problem(error);
      if (response === undefined) throw error;
      if (!isTurngateError(error, 'REQUEST_IN_PROGRESS')) return response;
      return acceptedResponse(undefined, headerValue(response.headers, 'retry-after'));
    }
  }

  /** A ticket is no secret: it must not speak of operations that are none of a route's. */
  private issues(operation: string): boolean {
    const { name } = this.policy;
    return name === undefined ? isRouteOperation(operation) : operation === name;
  }
}

function handlerAnswer(outcome: string): HttpAnswer {
  return { kind: 'handler', headers: { [outcomeHeader]: outcome } };
}
