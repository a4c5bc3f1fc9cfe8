/** What a repeat gets: the same bytes, status and harmless headers. */
import { gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { send, until } from '../client.ts';
import type { Experiment } from '../experiments.ts';
import type { Reply } from '../world.ts';

const replayed = { 'idempotent-replayed': 'true' };

/** First and repeat of one reply; returns both and how often the handler ran. */
function replay(
  law: string,
  reply: Reply,
  check: (first: Answer, repeat: Answer) => void,
): Experiment {
  return {
    law,
    async run({ app }) {
      let runs = 0;
      const handle = (): Reply => {
        runs++;
        return reply;
      };
      const { url } = await app({ path: '/answer', handle });
      const first = await send(`${url}/answer`, { key: 'k', body: '{}' });
      const repeat = await send(`${url}/answer`, { key: 'k', body: '{}' });
      expect(first.status).toBe(reply.status ?? 200);
      expect(repeat.status).toBe(first.status);
      expect(repeat.body.equals(first.body)).toBe(true);
      expect(first.headers['idempotent-replayed']).toBeUndefined();
      expect(repeat.headers).toMatchObject(replayed);
      expect(Date.parse(String(repeat.headers['idempotency-first-processed-at']))).not.toBeNaN();
      check(first, repeat);
      expect(runs).toBe(1);
    },
  };
}

type Answer = Awaited<ReturnType<typeof send>>;

const bytes = Buffer.from([0x00, 0xff, 0xfe, 0x01]);

export const answerExperiments: readonly Experiment[] = [
  replay(
    'status, bytes and allow-listed headers are repeated',
    {
      status: 201,
      headers: {
        'content-type': 'application/json',
        location: '/orders/1',
        link: '</orders>; rel="collection"',
        etag: '"v1"',
        'content-language': 'en',
      },
      body: '{"b":1,  "a":[1e2]}',
    },
    (first, repeat) => {
      for (const name of ['content-type', 'location', 'link', 'etag', 'content-language']) {
        expect(repeat.headers[name], name).toBe(first.headers[name]);
        expect(first.headers[name], name).toBeDefined();
      }
      expect(first.text).toBe('{"b":1,  "a":[1e2]}');
      expect(first.headers['idempotency-outcome']).toBe('applied');
    },
  ),
  ...[204, 205, 304].map((status) =>
    replay(`L5 L11: ${status} keeps its status and has no body`, { status }, (first, repeat) => {
      expect(first.body.length).toBe(0);
      expect(repeat.body.length).toBe(0);
    }),
  ),
  replay(
    '303 is repeated with its Location',
    { status: 303, headers: { location: '/x' } },
    (_, repeat) => {
      expect(repeat.headers['location']).toBe('/x');
    },
  ),
  replay('an empty 200 is repeated empty', { status: 200 }, (_, repeat) => {
    expect(repeat.body.length).toBe(0);
  }),
  replay(
    'L7: binary bytes are equal',
    { headers: { 'content-type': 'application/octet-stream' }, body: bytes },
    (_, repeat) => {
      expect([...repeat.body]).toEqual([0x00, 0xff, 0xfe, 0x01]);
      expect(repeat.headers['content-type']).toBe('application/octet-stream');
    },
  ),
  replay(
    'L17: cookies and CORS headers of the first caller are not repeated',
    {
      headers: {
        'content-type': 'text/plain',
        'set-cookie': ['sid=secret', 'b=2'],
        'access-control-allow-origin': 'https://alice.example',
        vary: 'Cookie',
      },
      body: 'in',
    },
    (first, repeat) => {
      expect(first.headers['set-cookie']).toEqual(['sid=secret', 'b=2']);
      for (const name of ['set-cookie', 'access-control-allow-origin', 'vary']) {
        expect(repeat.headers[name], name).toBeUndefined();
      }
    },
  ),
  replay(
    'L41 L43: a text/csv answer keeps its type and charset',
    { headers: { 'content-type': 'text/csv; charset=utf-8' }, body: 'a,b\n1,é\n' },
    (first, repeat) => {
      expect(first.headers['content-type']).toBe('text/csv; charset=utf-8');
      expect(repeat.headers['content-type']).toBe('text/csv; charset=utf-8');
    },
  ),
  ...[402, 404, 409, 410, 422].map((status) =>
    replay(
      `a ${status} of the handler is stored`,
      { status, headers: { 'content-type': 'text/plain' }, body: 'no' },
      (first, repeat) => {
        expect(repeat.text).toBe('no');
        expect(first.headers['idempotency-outcome']).toBe('refused');
      },
    ),
  ),
  {
    law: 'L43: a repeat is written raw whatever it accepts',
    async run({ app }) {
      const reply = { headers: { 'content-type': 'application/json; charset=utf-8' }, body: '{}' };
      const { url } = await app({ path: '/any', handle: () => reply });
      await send(`${url}/any`, { key: 'k', body: '{}' });
      for (const accept of ['application/json', 'text/html', '*/*', 'image/png;q=0.1']) {
        const { status, text } = await send(`${url}/any`, {
          key: 'k',
          body: '{}',
          headers: { accept },
        });
        expect([status, text], accept).toEqual([200, '{}']);
      }
    },
  },
  {
    law: 'L59: an answer compressed inside the layer is repeated without the coding',
    async run({ app }) {
      const plain = 'compressible '.repeat(200);
      const headers = {
        'content-type': 'text/plain',
        'content-encoding': 'gzip',
        etag: '"of-the-gzip"',
      };
      const reply = { headers, body: gzipSync(plain) };
      const { url } = await app({ path: '/gz', handle: () => reply });
      const first = await send(`${url}/gz`, { key: 'k', headers: { 'accept-encoding': 'gzip' } });
      expect(first.headers['content-encoding']).toBe('gzip');
      const repeat = await send(`${url}/gz`, {
        key: 'k',
        headers: { 'accept-encoding': 'identity' },
      });
      expect(repeat.headers['content-encoding']).toBeUndefined();
      expect(repeat.headers['etag']).toBeUndefined();
      expect(repeat.text).toBe(plain);
    },
  },
  {
    law: 'L59: a compressor outside the layer codes first and repeat as each accepts',
    async run({ app }) {
      const plain = 'compressible '.repeat(200);
      const reply = { headers: { 'content-type': 'text/plain' }, body: plain };
      const { url } = await app({ path: '/compressed', handle: () => reply });
      const to = `${url}/compressed`;
      const first = await send(to, { key: 'k', headers: { 'accept-encoding': 'gzip' } });
      expect(first.headers['content-encoding']).toBe('gzip');
      const bare = await send(to, { key: 'k', headers: { 'accept-encoding': 'identity' } });
      expect(bare.headers['content-encoding']).toBeUndefined();
      expect(bare.text).toBe(plain);
      const again = await send(to, { key: 'k', headers: { 'accept-encoding': 'gzip' } });
      expect(again.headers['content-encoding']).toBe('gzip');
      expect(again.body.equals(first.body)).toBe(true);
    },
  },
  {
    law: 'L37: an answer over the cap is not kept, and the handler does not run again',
    async run({ app, tag, world }) {
      const big = 'x'.repeat(1_048_576);
      const { url } = await app({
        path: '/big',
        async handle(call) {
          await call.effect(`${tag}big`);
          return { status: 201, headers: { location: '/big/1' }, body: big };
        },
      });
      const first = await send(`${url}/big`, { key: 'k', body: '{}' });
      expect([first.status, first.body.length]).toEqual([201, big.length]);
      const repeat = await send(`${url}/big`, { key: 'k', body: '{}' });
      expect(repeat.status).toBe(409);
      expect(JSON.parse(repeat.text)).toMatchObject({
        code: 'RESPONSE_NOT_KEPT',
        outcome: 'applied',
      });
      expect(repeat.headers).toMatchObject({ ...replayed, location: '/big/1' });
      expect(await world.lines(tag)).toEqual([`${tag}big`]);
    },
  },
  ...(['declared', 'text/event-stream'] as const).map(
    (kind): Experiment => ({
      law: `L13: a ${kind} stream starts at once and is not repeated`,
      async run({ app, tag, world }) {
        const type = kind === 'declared' ? 'text/plain' : kind;
        let seen = false;
        const { url } = await app({
          path: '/stream',
          ...(kind === 'declared' ? { options: { response: 'stream' } } : {}),
          async handle(call) {
            await call.effect(`${tag}stream`);
            const chunks = ['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n'];
            // Held back, the first byte would wait for the last, which waits for the first.
            return {
              headers: { 'content-type': type },
              stream: { chunks, after: () => until(() => seen) },
            };
          },
        });
        const onFirstByte = (): void => {
          seen = true;
        };
        const first = await send(`${url}/stream`, { key: 'k', body: '{}', onFirstByte });
        expect(first.text).toBe('data: 1\n\ndata: 2\n\ndata: 3\n\n');
        const repeat = await send(`${url}/stream`, { key: 'k', body: '{}' });
        expect(repeat.status).toBe(409);
        expect(JSON.parse(repeat.text)).toMatchObject({ code: 'RESPONSE_NOT_KEPT' });
        expect(await world.lines(tag)).toEqual([`${tag}stream`]);
      },
    }),
  ),
  {
    law: 'a stream that is not declared is held and repeated whole',
    async run({ app }) {
      const stream = { chunks: ['a', 'b', 'c'] };
      const reply = { headers: { 'content-type': 'text/plain' }, stream };
      const { url } = await app({ path: '/held', handle: () => reply });
      const first = await send(`${url}/held`, { key: 'k', body: '{}' });
      const repeat = await send(`${url}/held`, { key: 'k', body: '{}' });
      expect([first.text, repeat.text]).toEqual(['abc', 'abc']);
      expect(repeat.headers).toMatchObject(replayed);
    },
  },
  {
    law: 'redact takes secrets out of the record, not out of the first answer',
    async run({ app }) {
      const { url } = await app({
        path: '/secret',
        options: {
          redact: (response) => ({
            ...response,
            body: Buffer.from(
              Buffer.from(response.body ?? [])
                .toString()
                .replace(/\d{16}/, '****'),
            ),
          }),
        },
        handle: () => ({
          headers: { 'content-type': 'text/plain' },
          body: 'card 4111111111111111',
        }),
      });
      expect((await send(`${url}/secret`, { key: 'k' })).text).toBe('card 4111111111111111');
      expect((await send(`${url}/secret`, { key: 'k' })).text).toBe('card ****');
    },
  },
];
