/** Raw HTTP for experiments: bytes and headers as they are on the wire. */
import { request as nodeRequest } from 'node:http';

/** A whole answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  readonly text: string;
}

/** A request to send. */
export interface Send {
  readonly method?: string;
  readonly key?: string;
  readonly user?: string | undefined;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal;
  readonly onFirstByte?: () => void;
}

/** Sends one request on a connection of its own. */
export function send(url: string, what: Send = {}): Promise<Answer> {
  const { key, body, signal } = what;
  const user = 'user' in what ? what.user : 'alice';
  const headers: Record<string, string | string[]> = {
    ...(key === undefined ? {} : { 'idempotency-key': key }),
    ...(user === undefined ? {} : { 'x-user': user }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    'content-length': String(body === undefined ? 0 : Buffer.byteLength(body)),
    ...what.headers,
  };
  return new Promise((resolve, reject) => {
    const options = { method: what.method ?? 'POST', headers, agent: false as const };
    const req = nodeRequest(url, { ...options, ...(signal === undefined ? {} : { signal }) });
    req.on('error', reject);
    req.on('response', (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => {
        if (chunks.length === 0) what.onFirstByte?.();
        chunks.push(chunk);
      });
      res.on('error', reject);
      res.on('end', () => {
        const bytes = Buffer.concat(chunks);
        resolve({
          status: res.statusCode as number,
          headers: res.headers,
          body: bytes,
          text: bytes.toString('utf8'),
        });
      });
    });
    if (body !== undefined) req.write(body);
    req.end();
  });
}

/** Polls until a condition holds. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error('the condition did not come true in 10 s');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A promise to be opened by hand, to hold a handler. */
export function gatePromise(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
