/** Who repeats whom: operation and key from method, route, resolved path, query and header key. */
import { hash } from 'node:crypto';
import { TurngateError } from '../core/errors.ts';
import { parseStrictJson } from '../core/strict-json.ts';
import type { HttpRequest, RequestBody } from './message.ts';

const slugMax = 46;

/**
 * A readable operation name for a route, `http.post-orders-id-pay.3fa9c1d2`; the digest at the end
 * keeps apart routes that read alike. Templates are few, so names are few.
 */
export function operationNameOf(method: string, route: string | undefined): string {
  const text = `${method.toUpperCase()} ${route ?? ''}`;
  const slug = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, slugMax)
    .replace(/^-|-$/g, '');
  return `http.${slug}.${hash('sha256', text, 'hex').slice(0, 8)}`;
}

/** Is this a name that {@link operationNameOf} gives? */
export function isRouteOperation(name: string): boolean {
  return /^http\.[a-z0-9-]+\.[0-9a-f]{8}$/.test(name);
}

/**
 * The record's key: the client's key and 22 characters that stand for method, route, path and query,
 * so that one client key on two resources is two identities. A key too long for the store's column
 * is replaced by its digest; `#` and `*` at a fixed place keep the two forms apart.
 */
export function recordKeyOf(request: HttpRequest, key: string): string {
  const { method, route, url } = request;
  const [path = '', query = ''] = splitOnce(url, '?');
  const target = [method.toUpperCase(), route ?? null, path, sortedQuery(query)];
  const digest = hash('sha256', JSON.stringify(target), 'base64url').slice(0, 22);
  return key.length <= 232 ? `${key}#${digest}` : `${hash('sha256', key, 'base64url')}*${digest}`;
}

/** Order between names means nothing; order between values of one name does. */
function sortedQuery(query: string): [string, string][] {
  const pairs = [...new URLSearchParams(splitOnce(query, '#')[0])];
  return pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); // Array sort is stable.
}

function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

/** What may not change under one key: the raw bytes, the JSON value, or chosen parts. */
export type FingerprintRule<Native> =
  | 'bytes'
  | 'json'
  | ((request: Native, body: BodyView) => unknown);

/** The body as a fingerprint function sees it. */
export interface BodyView {
  /** The raw bytes; undefined when a parser ran first and kept none. */
  readonly bytes: Uint8Array | undefined;
  /**
   * The JSON value; undefined for an empty body.
   *
   * @throws PAYLOAD_INVALID for bad JSON, a repeated member name, or an integer beyond 2^53 - 1
   */
  json(): unknown;
}

/** The value that is compared between a first and its repeats. */
export function payloadOf<Native>(
  rule: FingerprintRule<Native>,
  native: Native,
  body: RequestBody,
): unknown {
  const bytes = body instanceof Uint8Array ? body : undefined;
  const json = (): unknown => (body instanceof Uint8Array ? strictJson(body) : body.parsed);
  if (typeof rule === 'function') return ['custom', rule(native, { bytes, json })];
  // A parser that kept no bytes leaves only the value to compare.
  if (rule === 'json' || bytes === undefined) return ['json', json()];
  return ['bytes', hash('sha256', bytes, 'base64url')];
}

function strictJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  try {
    return parseStrictJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw payloadInvalid(cause);
  }
}

/** The 400 for a body that has no single meaning. */
export function payloadInvalid(cause: unknown): TurngateError {
  const message = `the request body: ${(cause as Error).message}`;
  return new TurngateError('PAYLOAD_INVALID', message, { cause });
}

/** The 413 of a body over the route's limit. */
export function payloadTooLarge(bytesMax: number): TurngateError {
  const message = `the request body is larger than ${bytesMax} bytes`;
  return new TurngateError('PAYLOAD_TOO_LARGE', message);
}
