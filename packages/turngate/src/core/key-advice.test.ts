import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { adviseKey } from './key-advice.ts';

const kindOf = (key: string, scope?: string): string | undefined => {
  const advice = adviseKey(key, scope === undefined ? {} : { scope });
  return advice === undefined ? undefined : `${advice.verdict} ${advice.kind}`;
};

describe('key advice', () => {
  it('refuses the user alone, in whichever way the scope spells it, and nothing else', () => {
    for (const [key, scope] of [
      ['7', 'user:7'],
      ['user:7', 'user:7'],
      ['7', '7'],
      ['ann', 'Customer:ann'],
    ] as const) {
      expect(kindOf(key, scope)).toBe('refuse user-id');
    }
    // A coupon may have the name of a customer; an order number may end like one.
    expect(kindOf('u1', 'coupon:u1')).toBeUndefined();
    expect(kindOf('o-7', 'user:7')).toBeUndefined();
    expect(kindOf('0007', 'user:10007')).toBe('warn short-counter');
    expect(kindOf('-', '-')).toBeUndefined();
  });

  it('warns of points in time, hashes alone and short counters, with the reason', () => {
    const sha = (name: string, encoding: 'hex' = 'hex') =>
      createHash(name).update('{"a":1}').digest(encoding);
    const warned: Record<string, string[]> = {
      timestamp: [
        '2026-11-29T10:00:00Z',
        '2026-11-29 10:00',
        '2026-11-29T10:00:00.123+08:00',
        '1796000000',
        '1796000000123',
        '1796000000123456',
        '1796000000.25',
      ],
      hash: [sha('md5'), sha('sha1'), sha('sha256'), sha('sha256').toUpperCase(), sha('sha512')],
      'short-counter': ['1', '42', '99999'],
    };
    for (const [kind, keys] of Object.entries(warned)) {
      for (const key of keys) expect(`${key} ${kindOf(key)}`).toBe(`${key} warn ${kind}`);
    }
    expect(adviseKey('1')?.reason).toContain('counters');
  });

  it('says nothing about business numbers, UUIDs, ULIDs and random keys', () => {
    for (const key of [
      'f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
      '01ARZ3NDEKTSV4RRFFQ69G5FAV',
      '20261129-5f2b1c9e8d7a6b5c4d3e',
      'order-1796000000',
      '2026-11-29',
      '123456',
      'kNQrX2m5b8TzVw4',
      `sha256:${'a'.repeat(64)}`,
    ]) {
      expect(`${key} ${kindOf(key, 'user:7')}`).toBe(`${key} undefined`);
    }
  });
});
