/** The client against a real server that fails in the ways servers do. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createIdempotentFetch } from 'turngate/client';
import { afterEach, describe, expect, it } from 'vitest';
import { gatePromise, until } from './client.ts';
import { expressFrameworks } from './frameworks/express.ts';
import { type Framework, memoryWorld } from './world.ts';

interface Seen {
  readonly key: string | undefined;
  readonly body: string;
  readonly atMs: number;
}
type Act = (res: ServerResponse, req: IncomingMessage) => void;

let server: Server | undefined;
afterEach(async () => {
  server?.closeAllConnections();
  if (server !== undefined) await new Promise((resolve) => server?.close(resolve));
});

/** Does one act per request, the last one for all that follow. */
async function serverThat(...acts: Act[]): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  server = createServer((req, res) => {
    void (async () => {
      let body = '';
      for await (const chunk of req) body += chunk;
      const key = req.headers['idempotency-key'] as string | undefined;
      seen.push({ key, body, atMs: performance.now() });
      (acts[seen.length - 1] ?? (acts.at(-1) as Act))(res, req);
    })();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/pay`, seen };
}

const says =
  (status: number, headers: Record<string, string> = {}): Act =>
  (res) =>
    res.writeHead(status, headers).end('x');
const cuts: Act = (_, req) => req.socket.destroy();
const silent: Act = () => {};
function controlled(): { readonly signal: AbortSignal; readonly abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort(new Error('enough')) };
}
const quick = { baseMs: 1, capMs: 5 };

describe('idempotentFetch', () => {
  it.each([
    ['a cut connection', cuts],
    ['425', says(425)],
    ['429', says(429)],
    ['502', says(502)],
    ['503', says(503)],
    ['504', says(504)],
    ['409 while the first runs', says(409, { 'idempotency-outcome': 'unknown' })],
    ['202 while the first runs', says(202, { 'idempotency-outcome': 'unknown' })],
  ])('%s: sends again with the same key and the same bytes', async (_, act) => {
    const { url, seen } = await serverThat(act, act, says(201));
    const result = await createIdempotentFetch(quick)(url, { body: '{"a":1}' });
    expect(result).toMatchObject({ outcome: 'applied', attempts: 3, key: seen[0]?.key });
    expect(new Set(seen.map(({ key, body }) => `${key} ${body}`)).size).toBe(1);
  });

  it.each([
    ['200', says(200), 'applied'],
    ['a stored 409', says(409, { 'idempotency-outcome': 'refused' }), 'not-applied'],
    ['400', says(400), 'not-applied'],
    ['422', says(422, { 'idempotency-outcome': 'not-applied' }), 'not-applied'],
    ['500 that says nothing', says(500), 'unknown'],
  ])('%s: stops', async (_, act, outcome) => {
    const { url, seen } = await serverThat(act);
    expect(await createIdempotentFetch(quick)(url, { body: 'x' })).toMatchObject({ outcome });
    expect(seen.length).toBe(1);
  });

  it("the caller's signal ends the reading of the body too", async () => {
    const { url } = await serverThat((res) => void res.writeHead(201).write('half'));
    const { signal, abort } = controlled();
    const { response } = await createIdempotentFetch(quick)(url, { body: 'x', signal });
    const reading = response?.text();
    abort();
    await expect(reading).rejects.toThrow('enough');
  });

  it('a new intent has a new key; an intent keeps its own', async () => {
    const { url, seen } = await serverThat(says(201));
    const send = createIdempotentFetch(quick);
    await send(url, { body: 'x' });
    await send(url, { body: 'x' });
    const intent = send.intent();
    await intent.fetch(url, { body: 'x' });
    await intent.fetch(url, { body: 'x' });
    const keys = seen.map(({ key }) => key);
    expect(keys[2]).toBe(keys[3]);
    expect(new Set(keys).size).toBe(3);
  });

  it('an intent refuses another body, and a stream', async () => {
    const { url, seen } = await serverThat(says(201));
    const intent = createIdempotentFetch(quick).intent('k');
    await intent.fetch(url, { body: 'x' });
    const reused = expect.objectContaining({ code: 'IDEMPOTENCY_KEY_REUSED' });
    await expect(intent.fetch(url, { body: 'y' })).rejects.toEqual(reused);
    await expect(intent.fetch(`${url}2`, { body: 'x' })).rejects.toEqual(reused);
    const body = new ReadableStream();
    const invalid = expect.objectContaining({ code: 'OPTION_INVALID' });
    await expect(createIdempotentFetch()(url, { body })).rejects.toEqual(invalid);
    expect(seen.length).toBe(1);
  });

  it('a form is sent with one boundary over all attempts', async () => {
    const { url, seen } = await serverThat(says(503), says(201));
    const body = new FormData();
    body.set('a', '1');
    await createIdempotentFetch(quick)(url, { body });
    expect(seen[0]?.body).toContain('name="a"');
    expect(seen[1]?.body).toBe(seen[0]?.body);
  });

  it('honours Retry-After in seconds and as a date', async () => {
    for (const value of ['1', () => new Date(Date.now() + 2_000).toUTCString()]) {
      const wait: Act = (res) =>
        res.writeHead(503, { 'retry-after': typeof value === 'string' ? value : value() }).end();
      const { url, seen } = await serverThat(wait, says(201));
      await createIdempotentFetch(quick)(url, { body: 'x' });
      const [first, second] = seen as [Seen, Seen];
      expect(second.atMs - first.atMs).toBeGreaterThan(950);
    }
  });

  it('does not wait for what is beyond its budget, and says what is known', async () => {
    const { url, seen } = await serverThat(says(503, { 'retry-after': '3600' }));
    const result = await createIdempotentFetch(quick)(url, { body: 'x' });
    expect([result.outcome, result.response?.status, seen.length]).toEqual(['unknown', 503, 1]);
  });

  it('gives up after attemptsMax: unknown, never an exception', async () => {
    const { url, seen } = await serverThat(cuts);
    const result = await createIdempotentFetch({ ...quick, attemptsMax: 3 })(url, { body: 'x' });
    expect(result).toMatchObject({ outcome: 'unknown', response: undefined, attempts: 3 });
    expect(result.error).toBeInstanceOf(Error);
    expect(seen.length).toBe(3);
  });

  it('no answer in time is unknown and tried again', async () => {
    const { url, seen } = await serverThat(silent, says(201));
    const result = await createIdempotentFetch({ ...quick, attemptMs: 100 })(url, { body: 'x' });
    expect([result.outcome, seen.length]).toEqual(['applied', 2]);
  });

  it('a "not applied" after an attempt in doubt stays unknown', async () => {
    const { url } = await serverThat(cuts, says(401, { 'idempotency-outcome': 'not-applied' }));
    const result = await createIdempotentFetch(quick)(url, { body: 'x' });
    expect(result).toMatchObject({ outcome: 'unknown', attempts: 2 });
  });

  it('a stored refusal after an attempt in doubt is the last word', async () => {
    const { url } = await serverThat(cuts, says(402, { 'idempotency-outcome': 'refused' }));
    const result = await createIdempotentFetch(quick)(url, { body: 'x' });
    expect(result.outcome).toBe('not-applied');
  });

  it('an abort ends it at once: before sending nothing was applied, later it is unknown', async () => {
    const { url, seen } = await serverThat(silent);
    const send = createIdempotentFetch(quick);
    const aborted = await send(url, { body: 'x', signal: AbortSignal.abort() });
    expect([aborted.outcome, aborted.attempts, seen.length]).toEqual(['not-applied', 0, 0]);
    const leaving = new AbortController();
    const pending = send(url, { body: 'x', signal: leaving.signal });
    await until(() => seen.length === 1);
    leaving.abort();
    expect(await pending).toMatchObject({ outcome: 'unknown', attempts: 1 });
  });

  it('against the layer: an answer that was lost is found again, run once', async () => {
    const world = await memoryWorld();
    const hold = gatePromise();
    let runs = 0;
    const [framework] = expressFrameworks as [Framework, ...Framework[]];
    const app = await framework.start(world, [
      {
        path: '/pay',
        async handle() {
          runs++;
          await hold.opened;
          return { status: 201, body: 'paid' };
        },
      },
    ]);
    const headers = { 'x-user': 'alice' };
    let calls = 0;
    const counted: typeof fetch = (input, init) => {
      calls++;
      return fetch(input, init);
    };
    const send = createIdempotentFetch({ ...quick, attemptMs: 100, fetch: counted });
    const pending = send(`${app.url}/pay`, { body: '{}', headers });
    await until(() => runs === 1);
    await until(() => calls === 2); // The first attempt was given up.
    hold.open();
    const { response, outcome, attempts } = await pending;
    expect([outcome, await response?.text(), runs]).toEqual(['applied', 'paid', 1]);
    expect(attempts).toBeGreaterThan(1);
    await app.close();
    await world.close();
  });
});

describe('turngate/client', () => {
  it('imports nothing of node: it runs in browsers', () => {
    const seen = new Set<string>();
    const visit = (url: URL): void => {
      if (seen.has(url.href)) return;
      seen.add(url.href);
      const imports = readFileSync(url, 'utf8').matchAll(/\bfrom '([^']+)'/g);
      for (const [, name = ''] of imports) {
        expect(name, url.href).toMatch(/^\./);
        visit(new URL(name, url));
      }
    };
    visit(new URL(import.meta.resolve('turngate/client')));
    expect(seen.size).toBeGreaterThan(3);
  });
});
