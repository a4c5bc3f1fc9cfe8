import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HandlerResponse } from './message.ts';
import { storedByDefault, storedHeaders } from './response-policy.ts';
import { decodeStored, encodeStored, keepable } from './stored-response.ts';

const limits = { headers: storedHeaders(undefined), bytesMax: 1_000 };
const response = (parts: Partial<HandlerResponse>): HandlerResponse => ({
  status: 200,
  headers: [],
  body: null,
  ...parts,
});

describe('a stored response', () => {
  it('gives back status, kept headers and bytes exactly', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 500 }),
        fc.integer({ min: 200, max: 599 }),
        (body, status) => {
          fc.pre(status !== 204 && status !== 205 && status !== 304);
          const headers = [
            ['Content-Type', 'a/b'],
            ['Link', '<1>'],
            ['Link', '<2>'],
          ] as const;
          const kept = keepable(response({ status, headers, body }), limits);
          const text = JSON.stringify(encodeStored(kept));
          const again = decodeStored(JSON.parse(text));
          expect(again.kind).toBe('kept');
          expect(again.response.status).toBe(status);
          expect(again.response.headers).toEqual(headers.map(([n, v]) => [n.toLowerCase(), v]));
          expect([...(again.response.body as Uint8Array)]).toEqual([...body]);
        },
      ),
      { numRuns: 100 },
    );
  });

  it.each([204, 205, 304])('%i never has a body, even when a handler gave one', (status) => {
    const kept = keepable(response({ status, body: Buffer.from('x') }), limits);
    expect(decodeStored(encodeStored(kept)).response.body).toBeNull();
  });

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
  ] as const)('%s is undone, and the cap counts the plain bytes', (coding, compress) => {
    const headers = [
      ['content-encoding', coding],
      ['etag', '"s"'],
      ['ETag', 'W/"w"'],
    ] as const;
    const plain = keepable(response({ headers, body: compress(Buffer.from('plain')) }), limits);
    expect(plain.kind).toBe('kept');
    expect(String(plain.response.body)).toBe('plain');
    expect(plain.response.headers).toEqual([['ETag', 'W/"w"']]);
    const bomb = keepable(response({ headers, body: compress(Buffer.alloc(100_000)) }), limits);
    expect(bomb).toMatchObject({ kind: 'not-kept', why: 'too-large' });
  });

  it.each([
    [{ body: 'stream' as const }, 'stream'],
    [{ body: Buffer.alloc(1_001) }, 'too-large'],
    [
      { body: Buffer.from('?'), headers: [['content-encoding', 'zstd']] as const },
      'content-coding',
    ],
    [
      { body: Buffer.from('not gzip'), headers: [['content-encoding', 'gzip']] as const },
      'content-coding',
    ],
  ])('what cannot be kept is a tombstone (%#)', (parts, why) => {
    const tombstone = keepable(response(parts), limits);
    expect(decodeStored(encodeStored(tombstone))).toMatchObject({ kind: 'not-kept', why });
  });

  it.each([[undefined], [null], [[]], [[2, 200, [], 't', '']], ['text']])(
    'an unknown form %j is unreadable, never a run',
    (form) => {
      expect(() => decodeStored(form)).toThrow(
        expect.objectContaining({ code: 'RECORD_UNREADABLE' }),
      );
    },
  );
});

describe('what is stored', () => {
  it('is 2xx, 3xx and the business 4xx', () => {
    const all = Array.from({ length: 600 }, (_, i) => i).filter(storedByDefault);
    const expected = [...Array.from({ length: 200 }, (_, i) => 200 + i), 402, 404, 409, 410, 422];
    expect(all).toEqual(expected);
  });

  it.each([
    'set-cookie',
    'Set-Cookie2',
    'Authorization',
    'Connection',
    'Transfer-Encoding',
    'Date',
    'Vary',
    'Content-Encoding',
    'Content-Length',
    'Access-Control-Allow-Origin',
    'Idempotent-Replayed',
  ])('can never be %s', (name) => {
    expect(() => storedHeaders([name])).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    );
  });
});
