/** Express' own 404 is no fact; one that a handler gave is. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express5 from 'express';
import express4 from 'express4';
import { createGate } from 'turngate';
import { idempotency } from 'turngate/express';
import { memory } from 'turngate/memory';
import { expect, it } from 'vitest';
import { send } from './client.ts';

// biome-ignore lint/suspicious/noExplicitAny: Express has no types here.
type Any = any;

it.each([
  ['express 5', express5],
  ['express 4', express4],
])('%s: a route that is deployed later answers the key that met nobody', async (_, express) => {
  const app: Any = (express as Any)();
  const gate = createGate({ records: memory() });
  app.use(idempotency(gate, { dangerouslyGlobal: true }));
  let asked = 0;
  app.post('/missing', (_req: Any, res: Any) => res.status(404).json({ asked: ++asked }));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const post = (path: string) => send(`${url}${path}`, { key: path.slice(1) });
  expect((await post('/later')).status).toBe(404);
  app.post('/later', (_req: Any, res: Any) => res.json({ ok: true }));
  const answered = await post('/later');
  expect([answered.status, answered.text]).toEqual([200, '{"ok":true}']);
  expect((await post('/later')).headers['idempotent-replayed']).toBe('true');
  for (let i = 0; i < 2; i++) {
    const missing = await post('/missing');
    expect([missing.status, missing.text]).toEqual([404, '{"asked":1}']);
  }
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
