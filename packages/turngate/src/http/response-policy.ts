/** Which handler answers are facts to be repeated, and which headers may be repeated with them. */
import { optionError } from '../core/option.ts';

// 4xx that say something about the business object. The others say something about this attempt:
// credentials (401, 403, 407), timing (408, 425), load (429), or a bug. facts: idempotency §2.5.
const storedClientErrors: ReadonlySet<number> = new Set([402, 404, 409, 410, 422]);

/**
 * The default: 2xx, 3xx, 402, 404, 409, 410 and 422 are stored with the transaction they came from;
 * everything else rolls it back and frees the key.
 */
export function storedByDefault(status: number): boolean {
  return (status >= 200 && status < 400) || storedClientErrors.has(status);
}

/** Headers that are stored and repeated by default. */
export const storedHeadersDefault: readonly string[] = [
  'content-type',
  'content-language',
  'content-disposition',
  'content-location',
  'etag',
  'last-modified',
  'link',
  'location',
];

// Stored, each of these would speak for one client, one connection or one moment to another.
const neverStored =
  /^(set-cookie2?|authorization|www-authenticate|proxy-.*|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|date|age|vary|server-timing|access-control-.*|idempotent-replayed|idempotency-.*)$/;

/**
 * The default list plus the caller's.
 *
 * @throws OPTION_INVALID for a header that must never be stored
 */
export function storedHeaders(more: readonly string[] | undefined): ReadonlySet<string> {
  const names = new Set(storedHeadersDefault);
  if (more === undefined) return names;
  if (!Array.isArray(more)) throw optionError('storeHeaders', 'a list of header names', more);
  for (const given of more) {
    const name = String(given).toLowerCase();
    if (neverStored.test(name)) {
      throw optionError('storeHeaders', 'names of headers that may speak to another client', given);
    }
    names.add(name);
  }
  return names;
}
