import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkKey, checkOperationName } from '../core/record-id.ts';
import { operationNameOf, payloadOf, recordKeyOf } from './identity.ts';
import type { HttpRequest } from './message.ts';

const request = (
  url: string,
  method = 'POST',
  route: string | undefined = '/a/:id',
): HttpRequest => ({
  method,
  route,
  url,
  native: undefined,
  header: () => undefined,
  readBody: async () => new Uint8Array(0),
});

describe('the identity of a request', () => {
  it('names an operation for any route', () => {
    fc.assert(
      fc.property(fc.constantFrom('POST', 'PATCH'), fc.option(fc.string()), (method, route) => {
        checkOperationName(operationNameOf(method, route ?? undefined));
      }),
    );
    expect(operationNameOf('POST', '/orders/:id/pay')).toMatch(
      /^http\.post-orders-id-pay\.[0-9a-f]{8}$/,
    );
    expect(operationNameOf('POST', '/a-b')).not.toBe(operationNameOf('POST', '/a/b'));
    expect(operationNameOf('POST', '/a')).not.toBe(operationNameOf('PUT', '/a'));
  });

  it('gives a key the store takes, for every key a client may send', () => {
    const key = fc.string({
      unit: fc.integer({ min: 0x21, max: 0x7e }).map((c) => String.fromCharCode(c)),
      minLength: 1,
      maxLength: 255,
    });
    fc.assert(fc.property(key, (k) => void checkKey(recordKeyOf(request('/a/1'), k))));
  });

  it('differs by key, path, query, method and route; not by the order of query names', () => {
    const key = recordKeyOf(request('/a/1?x=1&y=2'), 'k');
    expect(recordKeyOf(request('/a/1?y=2&x=1'), 'k')).toBe(key);
    const others = [
      recordKeyOf(request('/a/1?x=1&y=2'), 'j'),
      recordKeyOf(request('/a/2?x=1&y=2'), 'k'),
      recordKeyOf(request('/a/1?x=1'), 'k'),
      recordKeyOf(request('/a/1?x=2&y=1'), 'k'),
      recordKeyOf(request('/a/1?x=1&y=2', 'PUT'), 'k'),
      recordKeyOf(request('/a/1?x=1&y=2', 'POST', '/b'), 'k'),
    ];
    expect(new Set([key, ...others]).size).toBe(7);
  });

  it('the two key forms cannot meet', () => {
    const long = recordKeyOf(request('/a/1'), 'k'.repeat(233));
    const spoof = long.slice(0, long.length - 23);
    expect(recordKeyOf(request('/a/1'), spoof)).not.toBe(long);
  });
});

describe('the payload that is compared', () => {
  const bytes = (text: string): Uint8Array => Buffer.from(text);

  it('bytes: one byte more is another payload', () => {
    expect(payloadOf('bytes', {}, bytes('{}'))).not.toEqual(payloadOf('bytes', {}, bytes('{} ')));
  });

  it('without bytes the parsed value is compared', () => {
    expect(payloadOf('bytes', {}, { parsed: { a: 1 } })).toEqual(['json', { a: 1 }]);
  });

  it.each(['{"a":', '{"a":1,"a":1}', '[9007199254740993]', '\u00ff'])(
    'json: %j is refused',
    (text) => {
      const body = Buffer.from(text, 'latin1');
      expect(() => payloadOf('json', {}, body)).toThrow(
        expect.objectContaining({ code: 'PAYLOAD_INVALID' }),
      );
    },
  );
});
