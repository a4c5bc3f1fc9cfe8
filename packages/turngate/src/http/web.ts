/** The layer's values as the web's Request and Response. */
import { payloadTooLarge } from './identity.ts';
import { type HeaderLines, type HttpResponse, nullBodyStatuses } from './message.ts';

/** Reads a body from a clone, so that the handler can read it too. */
export async function readWebBody(request: Request, bytesMax: number): Promise<Uint8Array> {
  if (Number(request.headers.get('content-length') ?? 0) > bytesMax) {
    throw payloadTooLarge(bytesMax);
  }
  const stream = request.clone().body;
  if (stream === null) return new Uint8Array(0);
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks);
    size += value.length;
    if (size > bytesMax) {
      reader.cancel().catch(() => {});
      throw payloadTooLarge(bytesMax);
    }
    chunks.push(value);
  }
}

/** Header lines of a web Headers object; Set-Cookie keeps its several lines. */
export function webHeaders(headers: Headers): HeaderLines {
  return [...headers];
}

/** A web Response; the null-body statuses get no body, as the web demands. */
export function webResponse({ status, headers, body }: HttpResponse): Response {
  const lines = new Headers();
  for (const [name, value] of headers) lines.append(name, value);
  const noBody = body === null || nullBodyStatuses.has(status);
  return new Response(noBody ? null : new Uint8Array(body), { status, headers: lines });
}
