/**
 * A response as it lies in the record: compact, versioned, with allow-listed headers and the body
 * before any content coding, so that a repeat with another Accept-Encoding can read it.
 *
 * `[version, status, headers, kind, body]`; kind t: UTF-8 text, b: base64, n: no body, k: not kept.
 */
import { isUtf8 } from 'node:buffer';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import { TurngateError } from '../core/errors.ts';
import {
  type HandlerResponse,
  type HeaderLines,
  type HttpResponse,
  headerValue,
  nullBodyStatuses,
} from './message.ts';

const version = 1;

/** Why a body is not in the record. */
export type NotKept = 'too-large' | 'stream' | 'content-coding';

/** The stored form; plain JSON. */
export type StoredForm = readonly [
  version: number,
  status: number,
  headers: readonly string[],
  kind: 't' | 'b' | 'n' | 'k',
  body: string,
];

/** A decoded record: the response to repeat, or what is known of one that was not kept. */
export type StoredResponse =
  | { readonly kind: 'kept'; readonly response: HttpResponse }
  | { readonly kind: 'not-kept'; readonly why: NotKept; readonly response: HttpResponse };

/** What may be kept. */
export interface KeepLimits {
  readonly headers: ReadonlySet<string>;
  readonly bytesMax: number;
}

/** The part of a handler's response another caller may see: allow-listed headers, identity bytes. */
export function keepable(response: HandlerResponse, limits: KeepLimits): StoredResponse {
  const { status, body } = response;
  const kept = response.headers.filter(([name]) => limits.headers.has(name.toLowerCase()));
  const bare = { status, headers: kept, body: null };
  if (body === 'stream') return { kind: 'not-kept', why: 'stream', response: bare };
  if (body === null || nullBodyStatuses.has(status)) return { kind: 'kept', response: bare };
  const coding = headerValue(response.headers, 'content-encoding')?.trim().toLowerCase();
  const isCoded = coding !== undefined && coding !== '' && coding !== 'identity';
  const bytes = isCoded ? identityBytes(coding, body, limits.bytesMax) : body;
  if (typeof bytes === 'string') return { kind: 'not-kept', why: bytes, response: bare };
  if (bytes.length > limits.bytesMax) return { kind: 'not-kept', why: 'too-large', response: bare };
  const headers = isCoded ? kept.filter(([name, value]) => !isStrongTag(name, value)) : kept;
  return { kind: 'kept', response: { status, headers, body: bytes } };
}

/** A strong ETag names the coded bytes; it does not hold for the identity ones. */
function isStrongTag(name: string, value: string): boolean {
  return name.toLowerCase() === 'etag' && !value.startsWith('W/');
}

function identityBytes(coding: string, body: Uint8Array, bytesMax: number): Uint8Array | NotKept {
  const options = { maxOutputLength: Math.max(1, bytesMax) };
  try {
    switch (coding) {
      case 'gzip':
      case 'x-gzip':
        return gunzipSync(body, options);
      case 'br':
        return brotliDecompressSync(body, options);
      case 'deflate':
        return inflateSync(body, options);
      default:
        return 'content-coding';
    }
  } catch (error) {
    const { code } = error as { code?: string };
    return code === 'ERR_BUFFER_TOO_LARGE' ? 'too-large' : 'content-coding';
  }
}

/** Writes the stored form. */
export function encodeStored(stored: StoredResponse): StoredForm {
  const { status, headers, body } = stored.response;
  const flat = headers.flatMap(([name, value]) => [name.toLowerCase(), value]);
  if (stored.kind === 'not-kept') return [version, status, flat, 'k', stored.why];
  if (body === null) return [version, status, flat, 'n', ''];
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return isUtf8(bytes)
    ? [version, status, flat, 't', bytes.toString('utf8')]
    : [version, status, flat, 'b', bytes.toString('base64')];
}

/** @throws RECORD_UNREADABLE for a form of a newer release */
export function decodeStored(form: unknown): StoredResponse {
  if (!Array.isArray(form) || form[0] !== version || form.length !== 5) {
    throw new TurngateError('RECORD_UNREADABLE', 'the stored response has an unknown form');
  }
  const [, status, flat, kind, text] = form as unknown as StoredForm;
  const headers = pairs(flat);
  if (kind === 'k') {
    return { kind: 'not-kept', why: text as NotKept, response: { status, headers, body: null } };
  }
  const body = kind === 'n' ? null : Buffer.from(text, kind === 't' ? 'utf8' : 'base64');
  return { kind: 'kept', response: { status, headers, body } };
}

function pairs(flat: readonly string[]): HeaderLines {
  const lines: [string, string][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2)
    lines.push([flat[i] as string, flat[i + 1] as string]);
  return lines;
}
