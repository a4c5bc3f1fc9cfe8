import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseIdempotencyKey } from './idempotency-key.ts';

const invalid = expect.objectContaining({ code: 'IDEMPOTENCY_KEY_INVALID', httpStatus: 400 });
const missing = expect.objectContaining({ code: 'IDEMPOTENCY_KEY_MISSING', httpStatus: 400 });

describe('the Idempotency-Key header', () => {
  it.each([
    ['8e03978e-40d5-43dd-bc93-6894a57f9324', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
    ['"8e03978e-40d5-43dd-bc93-6894a57f9324"', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
    ['  k  ', 'k'],
    ['"k";v=1', 'k'],
    ['"k" ; v', 'k'],
    ['"a b"', 'a b'],
    ['"a,b"', 'a,b'],
    ['"a;b"', 'a;b'],
    ['"a\\"b\\\\c"', 'a"b\\c'],
    ['x'.repeat(255), 'x'.repeat(255)],
  ])('%s is the key %s', (header, key) => {
    expect(parseIdempotencyKey(header)).toBe(key);
  });

  it('bare and quoted are one key', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{1,60}$/),
        (key) => {
          expect(parseIdempotencyKey(key)).toBe(key);
          expect(parseIdempotencyKey(`"${key}"`)).toBe(key);
        },
      ),
    );
  });

  it('a header that is not there is a missing key', () => {
    expect(() => parseIdempotencyKey(undefined)).toThrow(missing);
  });

  it.each([
    '',
    '   ',
    '""',
    '" "',
    'a, a',
    'a,a',
    '"a", "a"',
    'a b',
    'a;v=1',
    '"k1";v=1, "k2"',
    '"a',
    'a"',
    '"a" b',
    '"a"b',
    '"a\\b"',
    'ключ',
    '"é"',
    'a\u0000b',
    '"a\tb"',
    'x'.repeat(256),
    `"${'x'.repeat(256)}"`,
    "k'\\",
    '\u00a0k',
    '"k"\u00a0',
  ])('%j is refused', (header) => {
    expect(() => parseIdempotencyKey(header)).toThrow(invalid);
  });

  it('sent twice is refused, even with one value', () => {
    expect(() => parseIdempotencyKey(['a', 'a'])).toThrow(invalid);
    expect(() => parseIdempotencyKey(['a'])).toThrow(invalid);
  });
});
