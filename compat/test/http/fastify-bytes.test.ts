/** Fastify's own JSON parser leaves no bytes: the plugin keeps them before it. */
import { once } from 'node:events';
import { connect } from 'node:http2';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { createGate } from 'turngate';
import { turngateFastify } from 'turngate/fastify';
import { memory } from 'turngate/memory';
import { expect, it } from 'vitest';
import { send } from './client.ts';

it('raw bytes are compared behind the JSON parser, and the handler gets the value', async () => {
  const app = Fastify();
  const gate = createGate({ records: memory() });
  await app.register(turngateFastify as never, { gate, dangerouslyGlobal: true } as never);
  const config = { idempotency: true } as never;
  app.post('/pay', { config }, async ({ body }) => ({ got: body }));
  await app.listen({ port: 0, host: '127.0.0.1' });
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/pay`;
  const first = await send(url, { key: 'k', body: '{"a":1}' });
  expect([first.status, first.text]).toEqual([200, '{"got":{"a":1}}']);
  expect((await send(url, { key: 'k', body: '{"a": 1}' })).status).toBe(422);
  const repeat = await send(url, { key: 'k', body: '{"a":1}' });
  expect([repeat.text, repeat.headers['idempotent-replayed']]).toEqual([first.text, 'true']);
  expect((await send(url, { key: 'bad', body: '{"a":' })).status).toBe(400);
  expect((await send(url, { key: 'bad', body: '{"a":2}' })).status).toBe(200);
  await app.close();
});

it('HTTP/2: a body that no length announces is compared too', async () => {
  const app = Fastify({ http2: true });
  const gate = createGate({ records: memory() });
  await app.register(turngateFastify as never, { gate, dangerouslyGlobal: true } as never);
  const config = { idempotency: true } as never;
  app.post('/pay', { config }, async ({ body }) => ({ got: body }));
  await app.listen({ port: 0, host: '127.0.0.1' });
  const session = connect(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`);
  const post = async (body: string): Promise<string> => {
    const headers = { ':method': 'POST', ':path': '/pay', 'content-type': 'application/json' };
    const req = session.request({ ...headers, 'idempotency-key': 'k' });
    req.end(body);
    const [got] = await once(req, 'response');
    return `${got[':status']} ${Buffer.concat(await req.toArray())}`;
  };
  expect(await post('{"a":1}')).toBe('200 {"got":{"a":1}}');
  expect(await post('{"a":2}')).toMatch(/^422 /);
  expect(await post('{"a":1}')).toBe('200 {"got":{"a":1}}');
  session.destroy();
  await app.close();
});
