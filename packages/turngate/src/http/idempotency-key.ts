/**
 * The Idempotency-Key request header (draft-ietf-httpapi-idempotency-key-header-07): an RFC 9651 item
 * that must be a String, `"k"`, though nearly every client sends it bare, `k`. Both are one key here.
 */
import { TurngateError } from '../core/errors.ts';
import { checkKey } from '../core/record-id.ts';

const bare = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+$/; // Visible ASCII but " , ; and \
const quoted = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"(?:[ ]*;[^,]*)?$/; // No comma: two joined headers.

/**
 * The key in a header value. Parameters behind a quoted key are ignored, as the RFC says.
 *
 * Refused with IDEMPOTENCY_KEY_INVALID: a repeated header (Node joins it to `a, b`, so one duplicate
 * and a later single one would be two keys), an empty string, other than visible ASCII, over 255
 * characters. A missing header is IDEMPOTENCY_KEY_MISSING.
 */
export function parseIdempotencyKey(header: string | readonly string[] | undefined): string {
  if (header === undefined) {
    throw new TurngateError('IDEMPOTENCY_KEY_MISSING', 'the Idempotency-Key header is missing');
  }
  if (typeof header !== 'string') throw invalid('it was sent more than once');
  // Before trim(), which takes away more than HTTP's blanks.
  if (/[^\t\x20-\x7e]/.test(header)) throw invalid('only visible ASCII characters are allowed');
  const value = header.trim();
  if (value === '') throw invalid('it is empty');
  if (value[0] === '"') {
    const content = quoted.exec(value)?.[1];
    if (content === undefined) {
      throw invalid('it must be one string in double quotes, or one bare token');
    }
    const key = content.replace(/\\(["\\])/g, '$1');
    if (key.trim() === '') throw invalid('it is empty');
    return checkKey(key);
  }
  if (value.includes(',')) throw invalid('it holds a comma: sent more than once, or not one key');
  if (!bare.test(value)) throw invalid('only visible ASCII characters are allowed');
  return checkKey(value);
}

function invalid(why: string): TurngateError {
  return new TurngateError('IDEMPOTENCY_KEY_INVALID', `bad Idempotency-Key header: ${why}`);
}
