/** How a route is protected, and the check of that at the edge. */
import {
  functionOption,
  integerOption,
  knownOptions,
  optionError,
  wordOption,
} from '../core/option.ts';
import { checkOperationName } from '../core/record-id.ts';
import type { FingerprintRule } from './identity.ts';
import type { HttpResponse } from './message.ts';
import type { Problem } from './problem.ts';
import type { ResponseCodec } from './response-codec.ts';
import { storedByDefault, storedHeaders } from './response-policy.ts';

/** Options of one protected route, or of all routes behind one middleware. */
export interface HttpOptions<Native> {
  /**
   * The tenant or principal keys belong to: never the IP address (neighbours behind one NAT would
   * share keys). Blank or undefined is refused with IDEMPOTENCY_SCOPE_MISSING, a string over 255
   * bytes or with control characters with IDEMPOTENCY_SCOPE_INVALID. Required, unless
   * `dangerouslyGlobal` is set.
   */
  readonly scope?: (request: Native) => string | undefined;
  /** One key space for all callers: whoever knows or guesses a key gets the first one's answer. */
  readonly dangerouslyGlobal?: true;
  /** The operation's name in records and metrics. Default: made from method and route template. */
  readonly name?: string;
  /** Request header that carries the key. Default `idempotency-key`. */
  readonly header?: string;
  /** Methods that enter the layer; GET, HEAD, OPTIONS, TRACE and QUERY never do. */
  readonly methods?: readonly string[];
  /**
   * Must a request carry a key? With false, a request without one runs unprotected and without
   * `tx`. Default true.
   */
  readonly required?: boolean;
  /**
   * What may not change under one key: `bytes` (raw body), `json` (the JSON value after RFC 8785),
   * or a function that picks parts. Where a parser ran before and kept no bytes, `bytes` compares
   * the parsed value. Default `bytes`.
   */
  readonly fingerprint?: FingerprintRule<Native>;
  /** What a repeat of finished work gets: the first answer, or 409 DUPLICATE_REQUEST. Default `replay`. */
  readonly repeat?: 'replay' | 'reject';
  /**
   * What a repeat gets while the first runs: its answer (bounded by `waitMs`), 409 with Retry-After,
   * or 202 with the URL of `statusUrl`. Default `wait`.
   */
  readonly inFlight?: 'wait' | 'reject' | '202';
  /** Makes the status URL of a 202; answer it with `layer.status(ticket, scope)`. */
  readonly statusUrl?: (ticket: string, request: Native) => string;
  /** @unit milliseconds, integer, 0 to 600_000 @default 10_000 */
  readonly waitMs?: number;
  /** @unit milliseconds, integer, 1_000 to 3_650 days @default 2_592_000_000 (30 days) */
  readonly retentionMs?: number;
  /**
   * Largest request body; a larger one is 413 before anything is claimed.
   *
   * @unit bytes, integer, 0 to 1_073_741_824
   * @default 1_048_576
   */
  readonly bodyBytesMax?: number;
  /**
   * Largest response body that is kept, before content coding. A larger one reaches the first
   * caller; repeats get 409 RESPONSE_NOT_KEPT, and the handler does not run again.
   *
   * @unit bytes, integer, 0 to 8_388_608
   * @default 262_144
   */
  readonly responseBytesMax?: number;
  /**
   * `buffer`: the answer is held back until the record is durable. `stream`: the record is committed
   * when the handler sends its head, then bytes pass as they come and are not kept; effects through
   * `tx` must come before. A `text/event-stream` is always a stream. Default `buffer`.
   */
  readonly response?: 'buffer' | 'stream';
  /** More response headers to keep, besides the default list. Set-Cookie and the like are refused. */
  readonly storeHeaders?: readonly string[];
  /** Which handler statuses are stored; the others roll back. Default: see {@link storedByDefault}. */
  readonly storeStatus?: (status: number) => boolean;
  /** Takes secrets out of a response before it is stored. The first caller gets the original. */
  readonly redact?: (response: HttpResponse, request: Native) => HttpResponse;
  /** Encrypts stored responses. */
  readonly codec?: ResponseCodec;
  /**
   * Runs the handler *unprotected and without tx* when the store cannot be reached before it
   * started. Told by the event `unprotected`. Default false: 503 with Retry-After.
   */
  readonly failOpen?: boolean;
  /** Changes a problem document before it is sent: other statuses, other members. */
  readonly mapProblem?: (problem: Problem) => Problem;
}

/** Options after checking. */
export interface HttpPolicy<Native> {
  readonly scope: ((request: Native) => string | undefined) | undefined;
  readonly name: string | undefined;
  readonly header: string;
  readonly methods: ReadonlySet<string>;
  readonly required: boolean;
  readonly fingerprint: FingerprintRule<Native>;
  readonly repeat: 'replay' | 'reject';
  readonly inFlight: 'wait' | 'reject' | '202';
  readonly statusUrl: ((ticket: string, request: Native) => string) | undefined;
  readonly waitMs: number;
  readonly retentionMs: number;
  readonly bodyBytesMax: number;
  readonly response: 'buffer' | 'stream';
  readonly keep: { readonly headers: ReadonlySet<string>; readonly bytesMax: number };
  readonly storeStatus: (status: number) => boolean;
  readonly redact: ((response: HttpResponse, request: Native) => HttpResponse) | undefined;
  readonly codec: ResponseCodec | undefined;
  readonly failOpen: boolean;
  readonly mapProblem: ((problem: Problem) => Problem) | undefined;
}

const known = [
  'scope',
  'dangerouslyGlobal',
  'name',
  'header',
  'methods',
  'required',
  'fingerprint',
  'repeat',
  'inFlight',
  'statusUrl',
  'waitMs',
  'retentionMs',
  'bodyBytesMax',
  'responseBytesMax',
  'response',
  'storeHeaders',
  'storeStatus',
  'redact',
  'codec',
  'failOpen',
  'mapProblem',
];

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY']);
const dayMs = 86_400_000;

/** @throws OPTION_INVALID */
export function checkHttpOptions<Native>(options: HttpOptions<Native>): HttpPolicy<Native> {
  knownOptions('idempotency', options, known);
  const functions = ['statusUrl', 'storeStatus', 'redact', 'mapProblem'] as const;
  for (const name of functions)
    if (options[name] !== undefined) functionOption(name, options[name]);
  const inFlight = wordOption('inFlight', options.inFlight, ['wait', 'reject', '202'], 'wait');
  if (inFlight === '202' && options.statusUrl === undefined) {
    throw optionError('statusUrl', "given together with inFlight: '202'", options.statusUrl);
  }
  const responseRange = { min: 0, max: 8_388_608, fallback: 262_144 };
  return {
    scope: checkScopeRule(options),
    name: options.name === undefined ? undefined : checkOperationName(options.name),
    header: checkHeader(options.header),
    methods: checkMethods(options.methods),
    fingerprint: checkFingerprint(options.fingerprint),
    inFlight,
    keep: {
      headers: storedHeaders(options.storeHeaders),
      bytesMax: integerOption('responseBytesMax', options.responseBytesMax, responseRange),
    },
    repeat: wordOption('repeat', options.repeat, ['replay', 'reject'], 'replay'),
    response: wordOption('response', options.response, ['buffer', 'stream'], 'buffer'),
    required: booleanOption('required', options.required, true),
    failOpen: booleanOption('failOpen', options.failOpen, false),
    storeStatus: options.storeStatus ?? storedByDefault,
    statusUrl: options.statusUrl,
    redact: options.redact,
    codec: checkCodec(options.codec),
    mapProblem: options.mapProblem,
    ...checkNumbers(options),
  };
}

function checkScopeRule<Native>(
  options: HttpOptions<Native>,
): ((request: Native) => string | undefined) | undefined {
  const { scope, dangerouslyGlobal } = options;
  if (scope === undefined) {
    if (dangerouslyGlobal === true) return undefined;
    const expected = 'a function of the request (or set dangerouslyGlobal: true)';
    throw optionError('scope', expected, scope);
  }
  functionOption('scope', scope);
  if (dangerouslyGlobal !== undefined) {
    throw optionError('dangerouslyGlobal', 'left out where scope is given', dangerouslyGlobal);
  }
  return scope;
}

function checkHeader(header: string | undefined): string {
  if (header === undefined) return 'idempotency-key';
  if (typeof header === 'string' && /^[A-Za-z0-9-]+$/.test(header)) return header.toLowerCase();
  throw optionError('header', 'a header name', header);
}

function checkMethods(methods: readonly string[] | undefined): ReadonlySet<string> {
  if (methods === undefined) return new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
  if (!Array.isArray(methods)) throw optionError('methods', 'a list of methods', methods);
  const names = methods.map((method) => String(method).toUpperCase());
  const safe = names.find((name) => safeMethods.has(name));
  if (safe !== undefined) throw optionError('methods', 'methods that are not safe', safe);
  return new Set(names);
}

function checkFingerprint<Native>(
  rule: FingerprintRule<Native> | undefined,
): FingerprintRule<Native> {
  if (rule === undefined || rule === 'bytes') return 'bytes';
  if (rule === 'json' || typeof rule === 'function') return rule;
  throw optionError('fingerprint', "'bytes', 'json' or a function", rule);
}

function checkCodec(codec: ResponseCodec | undefined): ResponseCodec | undefined {
  if (codec === undefined) return undefined;
  functionOption('codec.seal', codec.seal);
  functionOption('codec.open', codec.open);
  return codec;
}

function booleanOption(option: string, value: boolean | undefined, fallback: boolean): boolean {
  if (value === undefined) return fallback;
  if (typeof value !== 'boolean') throw optionError(option, 'true or false', value);
  return value;
}

function checkNumbers(
  options: Pick<HttpOptions<never>, 'waitMs' | 'retentionMs' | 'bodyBytesMax'>,
): Pick<HttpPolicy<never>, 'waitMs' | 'retentionMs' | 'bodyBytesMax'> {
  const { waitMs, retentionMs, bodyBytesMax } = options;
  return {
    waitMs: integerOption('waitMs', waitMs, { min: 0, max: 600_000, fallback: 10_000 }),
    retentionMs: integerOption('retentionMs', retentionMs, {
      min: 1_000,
      max: 3_650 * dayMs,
      fallback: 30 * dayMs,
    }),
    bodyBytesMax: integerOption('bodyBytesMax', bodyBytesMax, {
      min: 0,
      max: 1_073_741_824,
      fallback: 1_048_576,
    }),
  };
}
