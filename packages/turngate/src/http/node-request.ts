/** Headers and raw body of a node:http request, read without taking them from the handler. */
import { TurngateError } from '../core/errors.ts';
import { payloadTooLarge } from './identity.ts';
import type { RequestBody } from './message.ts';

/** What a body parser leaves on the framework's request. */
export interface ParserRemains {
  readonly body?: unknown;
  readonly rawBody?: unknown;
}

/** The slice of `http.IncomingMessage` that is used. */
export interface NodeRequest extends ParserRemains {
  readonly method?: string | undefined;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly headersDistinct?: Readonly<Record<string, string[] | undefined>>;
  readonly complete?: boolean;
  /** Of HTTP/2, where a body needs no header that announces it. */
  readonly stream?: { readonly endAfterHeaders?: boolean; readonly readableEnded?: boolean };
  readonly readableEnded?: boolean;
  readonly readableFlowing?: boolean | null;
  read?(): unknown;
  unshift?(chunk: Uint8Array): void;
  on?(event: string, listener: (...args: never[]) => void): unknown;
  off?(event: string, listener: (...args: never[]) => void): unknown;
}

/** A header; a list when it was sent more than once, which Node's joined form would hide. */
export function nodeHeader(
  request: NodeRequest,
  name: string,
): string | readonly string[] | undefined {
  const all = request.headersDistinct?.[name];
  if (all !== undefined && all.length > 1) return all;
  return request.headers[name];
}

const kept = new WeakMap<object, Uint8Array>();

/**
 * Keeps the raw bytes for the fingerprint where a body parser runs first:
 * `express.json({ verify: keepRawBody })`.
 */
export function keepRawBody(request: object, _response: unknown, bytes: Uint8Array): void {
  kept.set(request, bytes);
}

/**
 * The raw body: kept by a parser, unread on the stream (it is put back), or else the parsed value.
 *
 * @throws PAYLOAD_TOO_LARGE; OPTION_INVALID when somebody read the stream and left nothing
 */
export async function readNodeBody(
  request: NodeRequest,
  bytesMax: number,
  left: ParserRemains = request,
): Promise<RequestBody> {
  const length = Number(request.headers['content-length'] ?? 0);
  if (length > bytesMax) throw payloadTooLarge(bytesMax);
  for (const bytes of [kept.get(request), left.rawBody, left.body]) {
    if (bytes instanceof Uint8Array) return checked(bytes, bytesMax);
    if (typeof bytes === 'string') return checked(Buffer.from(bytes, 'utf8'), bytesMax);
  }
  if (!hasBody(request)) return new Uint8Array(0);
  const isRead = request.readableEnded === true || request.readableFlowing === true;
  if (!isRead && request.read !== undefined) return await peek(request, bytesMax);
  if (left.body !== undefined) return { parsed: left.body };
  const message = 'the request body was read before the idempotency layer and nothing was kept';
  throw new TurngateError('OPTION_INVALID', message);
}

function hasBody({ headers, stream }: NodeRequest): boolean {
  if (headers['transfer-encoding'] !== undefined || stream?.endAfterHeaders === false) return true;
  return Number(headers['content-length'] ?? 0) > 0;
}

/** Has all of the body come? HTTP/2 calls a request complete only after its end was read. */
function hasCome({ complete, stream }: NodeRequest): boolean {
  return stream === undefined ? complete === true : stream.readableEnded === true;
}

function checked(bytes: Uint8Array, bytesMax: number): Uint8Array {
  if (bytes.length > bytesMax) throw payloadTooLarge(bytesMax);
  return bytes;
}

/**
 * Reads to the end and puts all of it back before 'end' is emitted: read() schedules the end for
 * the next tick and drops it when there is data again by then.
 */
function peek(request: NodeRequest, bytesMax: number): Promise<Uint8Array> {
  const stream = request as Required<NodeRequest>;
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    const stop = (): void => {
      stream.off('readable', onReadable);
      stream.off('error', onBroken);
      stream.off('close', onBroken);
    };
    const onReadable = (): void => {
      for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) {
        chunks.push(chunk as Uint8Array);
        size += (chunk as Uint8Array).length;
        if (size > bytesMax) {
          stop();
          reject(payloadTooLarge(bytesMax));
          return;
        }
      }
      if (!hasCome(request)) return;
      stop();
      const bytes = Buffer.concat(chunks);
      if (bytes.length > 0) stream.unshift(bytes);
      // Chunked and empty: nothing can be put back, and a parser would wait for the end in vain.
      else delete stream.headers['transfer-encoding'];
      resolve(bytes);
    };
    const onBroken = (): void => {
      stop();
      const message = 'the client went away while it was sending the body';
      reject(new TurngateError('PAYLOAD_INVALID', message));
    };
    stream.on('readable', onReadable);
    stream.on('error', onBroken);
    stream.on('close', onBroken);
    onReadable(); // What came before we listened.
  });
}
