/** Reads a request's payload stream whole, no further than its cap. */
import { collectBytes } from '../../http/body-bytes.ts';
import { payloadTooLarge } from '../../http/identity.ts';

/** @throws PAYLOAD_TOO_LARGE */
export async function collectBody(
  payload: AsyncIterable<Uint8Array>,
  headers: Readonly<Record<string, unknown>>,
  bytesMax: number,
): Promise<Buffer> {
  if (Number(headers['content-length'] ?? 0) > bytesMax) throw payloadTooLarge(bytesMax);
  return await collectBytes(payload, bytesMax, payloadTooLarge);
}
