import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkKey, checkOperationName, checkScope, keyDigest, recordIdText } from './record-id.ts';

const missing = expect.objectContaining({ code: 'IDEMPOTENCY_KEY_MISSING' });
const invalid = expect.objectContaining({ code: 'IDEMPOTENCY_KEY_INVALID' });
const bad = expect.objectContaining({ code: 'OPTION_INVALID' });

describe('the parts of an identity', () => {
  it('keys come back unchanged, up to 255 bytes', () => {
    const keys = ['k', 'a b', '0', 'false', 'é'.repeat(127), '🙂'.repeat(63), 'x'.repeat(255)];
    for (const key of keys) expect(checkKey(key)).toBe(key);
  });

  it.each([undefined, null, ''])('%j is a missing key', (key) => {
    expect(() => checkKey(key)).toThrow(missing);
  });

  it.each([
    [1],
    [0],
    [false],
    [1n],
    [{}],
    [[]],
    [' '],
    [' k'],
    ['k '],
    ['k\n'],
    ['a\u0000b'],
    ['a\u007fb'],
    ['a\u0085b'],
    ['a\u2028b'],
    ['\ud800'],
    ['x'.repeat(256)],
    ['é'.repeat(128)],
  ])('%o is refused, not spelt or cut', (key) => {
    expect(() => checkKey(key)).toThrow(invalid);
    expect(() => checkScope(key)).toThrow(bad);
  });

  it('a key never appears in the message that refuses it', () => {
    const secret = `${'s'.repeat(300)}`;
    expect(() => checkKey(secret)).toThrow(/^(?!.*sss)/);
  });

  it.each(['order.pay', 'a', 'a-b_c.d1'])('%s is an operation name', (name) => {
    expect(checkOperationName(name)).toBe(name);
  });

  it.each([
    undefined,
    1,
    '',
    'Order',
    'order.',
    '.order',
    'order..pay',
    'order pay',
    '1order',
    'a'.repeat(65),
    'order:pay',
  ])('%j is not an operation name', (name) => {
    expect(() => checkOperationName(name)).toThrow(bad);
  });

  it('two identities never have one text', () => {
    const part = fc.stringMatching(/^[a-c0-3:]{1,4}$/);
    const id = fc.record({ operation: part, scope: part, key: part });
    fc.assert(
      fc.property(id, id, (a, b) => {
        const same = a.operation === b.operation && a.scope === b.scope && a.key === b.key;
        expect(recordIdText(a) === recordIdText(b)).toBe(same);
      }),
      { numRuns: 1_000 },
    );
  });

  it('the digest of a key is eight hex digits', () => {
    expect(keyDigest('k')).toMatch(/^[0-9a-f]{8}$/);
  });
});
