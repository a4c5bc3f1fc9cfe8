/** A node:http response as it is used here, and how a whole answer is sent with it. */
import { type HttpResponse, headerRecord } from './message.ts';

/** The slice of `http.ServerResponse` that is used. */
export interface NodeResponse {
  statusCode: number;
  statusMessage: string;
  readonly headersSent: boolean;
  readonly writableEnded: boolean;
  getHeaders(): Record<string, unknown>;
  setHeader(name: string, value: string | readonly string[]): unknown;
  removeHeader(name: string): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: Node's overloads; only forwarded.
  writeHead(...args: any[]): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: Node's overloads; only forwarded.
  write(...args: any[]): boolean;
  // biome-ignore lint/suspicious/noExplicitAny: Node's overloads; only forwarded.
  end(...args: any[]): unknown;
  once(event: string, listener: () => void): unknown;
  emit(event: string): boolean;
}

const recomputed = ['content-length', 'transfer-encoding', 'content-encoding'];

/** Sends a whole response; headers set before, such as CORS, stay. */
export function sendNode(res: NodeResponse, response: HttpResponse): void {
  const { status, headers, body } = response;
  for (const name of recomputed) res.removeHeader(name);
  res.statusCode = status;
  for (const [name, value] of Object.entries(headerRecord(headers))) res.setHeader(name, value);
  if (body === null || body.length === 0) res.end();
  else res.end(body);
}
