/** The bytes of whatever a handler may give as a body. */
import { TurngateError } from '../core/errors.ts';

/** More than any answer worth holding; beyond it the work is rolled back instead of the process dying. */
export const heldBytesMax = 16 * 1_048_576;

/**
 * Bytes of text, bytes, a stream, a Blob, a web Response or a JSON value; null for none.
 *
 * @throws RESULT_INVALID for a stream over 16 MiB: declare `response: 'stream'`
 */
export async function bodyBytes(body: unknown): Promise<Uint8Array | null> {
  if (body === undefined || body === null) return null;
  if (typeof body === 'string') return Buffer.from(body, 'utf8');
  if (body instanceof Uint8Array) return body;
  if (body instanceof Blob) return new Uint8Array(await body.arrayBuffer());
  if (body instanceof Response) return new Uint8Array(await body.arrayBuffer());
  if (typeof body === 'object' && Symbol.asyncIterator in body) {
    return await collectBytes(body as AsyncIterable<Uint8Array | string>, heldBytesMax, tooLarge);
  }
  return Buffer.from(JSON.stringify(body), 'utf8');
}

/** All bytes of a stream; `tooLarge` makes the error for one over the limit. */
export async function collectBytes(
  chunks: AsyncIterable<Uint8Array | string>,
  bytesMax: number,
  tooLarge: (bytesMax: number) => TurngateError,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    const part = Buffer.from(chunk as Uint8Array);
    size += part.length;
    if (size > bytesMax) throw tooLarge(bytesMax);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** The error for an answer that is too large to be held. */
export function tooLarge(bytesMax: number): TurngateError {
  const message = `the answer is larger than ${bytesMax} bytes: declare response: 'stream'`;
  return new TurngateError('RESULT_INVALID', message);
}
