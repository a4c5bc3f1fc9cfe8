import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from './canonical-json.ts';
import { fingerprintOf, sameFingerprint } from './fingerprint.ts';
import { parseStrictJson } from './strict-json.ts';

const refused = expect.objectContaining({ code: 'OPTION_INVALID' });

function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== 'object' || value === null) return value;
  const copy = {};
  for (const [name, member] of Object.entries(value).reverse()) {
    Object.defineProperty(copy, name, { value: shuffled(member), enumerable: true });
  }
  return copy;
}

const json = fc.jsonValue({ noUnicodeString: false }).filter((value) => {
  try {
    return canonicalJson(value) !== '';
  } catch {
    return false; // Unsafe integers and lone surrogates, which have tests of their own.
  }
});

describe('canonical JSON', () => {
  it('writes the example of RFC 8785, 3.2.2 (less its two numbers beyond 2^53)', () => {
    const value = {
      numbers: [4.5, 2e-3, 0.000000000000000000000000001, 0, -0, 1.5e300 / 1e299],
      string: '€$\u000f\nA\'B"\\\\"/',
      literals: [null, true, false],
    };
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[4.5,0.002,1e-27,0,0,15],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  it('sorts names by UTF-16 code units, as the example of RFC 8785, 3.2.3', () => {
    const value = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    };
    const names = Object.keys(JSON.parse(canonicalJson({ ...value, '10': 0, '9': 0 })));
    const order = [...canonicalJson(value).matchAll(/:"(\w+)/g)].map(([, word]) => word);
    expect(order).toEqual(['Carriage', 'One', 'Control', 'Latin', 'Euro', 'Emoji', 'Hebrew']);
    expect(names).toHaveLength(9);
    expect(canonicalJson({ 9: 1, 10: 2, a: 3, A: 4 })).toBe('{"10":2,"9":1,"A":4,"a":3}');
  });

  it('gives one text for one value, whatever the order of members', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonicalJson(shuffled(value))).toBe(canonicalJson(value));
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('gives two texts for two values', () => {
    fc.assert(
      fc.property(json, json, (a, b) => {
        const same = canonicalJson(a) === canonicalJson(b);
        // JSON.parse makes -0 and 0 one, as JSON texts do.
        expect(same).toBe(isEqual(shuffledText(a), shuffledText(b)));
      }),
    );
  });

  it('keeps apart what shared a digest elsewhere', () => {
    const texts = [
      '{"__proto__":{"amount":1}}',
      '{"__proto__":{"amount":999}}',
      '{}',
      '{"a":1,"A":2}',
      '{"a":2,"A":1}',
      '{"a":"é"}',
      '{"a":"e\u0301"}',
      '[1]',
      '["1"]',
      '[[]]',
      '[{}]',
    ];
    const digests = new Set(texts.map((text) => fingerprintOf(JSON.parse(text))));
    expect(digests.size).toBe(texts.length);
  });

  it('has tagged forms no JSON value can spell', () => {
    const date = new Date(0);
    const values = [date, date.toISOString(), 1n, 1, '#int(1)', new Uint8Array([1]), [1], 0, [0]];
    expect(new Set(values.map((value) => canonicalJson(value))).size).toBe(values.length);
  });

  it('counts the holes of a sparse array', () => {
    const one: unknown[] = [];
    one.length = 1;
    expect(canonicalJson(one)).toBe('[null]');
    expect(canonicalJson([undefined])).toBe('[null]');
  });

  it('leaves out undefined members, and refuses undefined itself', () => {
    expect(canonicalJson({ a: undefined, b: 1 })).toBe('{"b":1}');
    expect(() => canonicalJson(undefined)).toThrow(refused);
  });

  it.each([
    ['$.a', { a: 2 ** 53 }],
    ['$', Number.NaN],
    ['$', Infinity],
    ['$.s', { s: '\ud800' }],
    ['$', { '\ud800': 1 }],
    ['$.f', { f: () => 1 }],
    ['$[1]', [0, new Map()]],
    ['$', new (class Money {})()],
    ['$', new Date(Number.NaN)],
    ['$', Symbol('s')],
  ])('refuses, naming the path %s', (path, value) => {
    expect(() => canonicalJson(value)).toThrow(refused);
    expect(() => canonicalJson(value)).toThrow(`no canonical form at ${path}`);
  });

  it('refuses cycles', () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    expect(() => canonicalJson(cycle)).toThrow('cycle');
  });
});

function shuffledText(value: unknown): unknown {
  return JSON.parse(canonicalJson(value));
}

function isEqual(a: unknown, b: unknown): boolean {
  try {
    expect(a).toStrictEqual(b);
    return true;
  } catch {
    return false;
  }
}

describe('fingerprints', () => {
  it('name their algorithm, and another algorithm is held against nobody', () => {
    const fingerprint = fingerprintOf({ amount: 1 });
    expect(fingerprint).toMatch(/^1\.[\w-]{43}$/);
    expect(sameFingerprint(fingerprint, fingerprintOf({ amount: 1 }))).toBe(true);
    expect(sameFingerprint(fingerprint, fingerprintOf({ amount: 2 }))).toBe(false);
    expect(sameFingerprint('2.whatever', fingerprint)).toBe(true);
  });
});

describe('strict JSON', () => {
  it('reads what JSON.parse reads', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = JSON.stringify(value);
        expect(parseStrictJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it.each([
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":2}',
    '[{"x":{"b":1,"c":[],"b":2}}]',
    '{"a":9007199254740993}',
    '[-9007199254740993]',
    '9007199254740992',
  ])('refuses %s', (text) => {
    expect(() => parseStrictJson(text)).toThrow(refused);
  });

  it.each([
    '{"a":{"a":1},"b":{"a":1}}',
    '["a","a"]',
    '{"a":"b","b":"a"}',
    '[{"a":1},{"a":1}]',
    '"9007199254740993"',
    '{"a":"{\\"a\\":1,\\"a\\":2}"}',
    '9007199254740991',
    '[true,"a",null,"a"]',
  ])('accepts %s', (text) => {
    expect(parseStrictJson(text)).toEqual(JSON.parse(text));
  });

  it('reads megabytes in one string', () => {
    const long = JSON.stringify({ a: 'x'.repeat(4_000_000), b: '\\"'.repeat(500_000) });
    expect(parseStrictJson(long)).toEqual(JSON.parse(long));
  });

  it('tells bad JSON as JSON.parse does', () => {
    expect(() => parseStrictJson('{"a":')).toThrow(SyntaxError);
  });
});
