/** The layer over real node:http and node:http2 responses, without a framework. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect, createServer as createServer2 } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { createGate } from '../gate/gate.ts';
import { memory } from '../stores/memory/index.ts';
import { createHttpLayer } from './layer.ts';
import { handleNode } from './node-exchange.ts';
import { type NodeRequest, nodeHeader, readNodeBody } from './node-request.ts';
import type { NodeResponse } from './node-send.ts';
import type { HttpOptions } from './options.ts';

type Handler = (req: IncomingMessage, res: ServerResponse) => Promise<void> | void;

/** A listener that protects the handler. Errors of the layer are answered with 599. */
function protect(handler: Handler, options: Partial<HttpOptions<NodeRequest>> = {}) {
  const gate = createGate({ records: memory() });
  const layer = createHttpLayer<never, NodeRequest>(gate as never, {
    dangerouslyGlobal: true,
    ...options,
  });
  return (req: unknown, res: unknown): void => {
    const native = req as NodeRequest & { method: string; url: string };
    const asked = {
      method: native.method,
      route: '/pay',
      url: native.url,
      native,
      header: (name: string) => nodeHeader(native, name),
      readBody: (bytesMax: number) => readNodeBody(native, bytesMax),
    };
    const start = (): void => void handler(req as IncomingMessage, res as ServerResponse);
    handleNode(layer, asked, res as NodeResponse, start).catch((error: Error) => {
      (res as ServerResponse).writeHead(599).end(error.message);
    });
  };
}

interface Answer {
  readonly status: number;
  readonly message: string | undefined;
  readonly text: string;
}

async function post(
  handler: Handler,
  options: Partial<HttpOptions<NodeRequest>> = {},
): Promise<Answer> {
  const server = createServer(protect(handler, options)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const headers = { 'idempotency-key': 'k' };
    const req = request({ port, host: '127.0.0.1', method: 'POST', headers, agent: false }).end();
    const [res] = (await once(req, 'response')) as [IncomingMessage];
    const text = Buffer.concat(await res.toArray()).toString();
    return { status: res.statusCode as number, message: res.statusMessage, text };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const writeOneByOne: Handler = async (_, res) => {
  res.writeHead(201, { 'Content-Type': 'text/plain' });
  for (const chunk of ['a', 'b', 'c']) {
    await new Promise<void>((resolve) => res.write(chunk, () => resolve()));
  }
  res.end();
};

it.each(['buffer', 'stream'] as const)(
  'a handler that waits for each write comes to its end: %s',
  async (response) => {
    expect(await post(writeOneByOne, { response })).toMatchObject({ status: 201, text: 'abc' });
  },
);

it('a replaced answer leaves with the words of its own status', async () => {
  const handler: Handler = (_, res) => {
    res.writeHead(201, 'Made With Care').end('x'.repeat(10));
  };
  const codec = {
    keyId: 'a',
    seal: () => Promise.reject(new Error('no seal')),
    open: () => '',
  };
  const answer = await post(handler, { codec });
  expect(answer).toMatchObject({ status: 599, text: 'no seal' });
  expect(answer.message).not.toBe('Made With Care');
});

it.each([true, false])(
  'HTTP/2: the body is read, compared and given to the handler; announced by a length: %s',
  async (announced) => {
    const server = createServer2(
      protect(async (req, res) => {
        res.end(`got ${Buffer.concat(await req.toArray())}`);
      }),
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const send = async (key: string, body: string): Promise<string> => {
      const length = announced ? { 'content-length': String(Buffer.byteLength(body)) } : {};
      const headers = { ':method': 'POST', ':path': '/pay', 'idempotency-key': key, ...length };
      const req = session.request(headers);
      req.end(body);
      const [got] = await once(req, 'response');
      return `${got[':status']} ${Buffer.concat(await req.toArray())}`;
    };
    try {
      const big = 'y'.repeat(400_000);
      expect(await send('k', 'a')).toBe('200 got a');
      expect(await send('k', 'a')).toBe('200 got a');
      expect(await send('k', 'b')).toMatch(/^422 /);
      expect(await send('empty', '')).toBe('200 got ');
      expect(await send('big', big)).toBe(`200 got ${big}`);
    } finally {
      session.destroy();
      server.close();
    }
  },
);
