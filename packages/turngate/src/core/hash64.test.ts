import { describe, expect, it } from 'vitest';
import { hash64 } from './hash64.ts';

describe('hash64', () => {
  it('gives 200,000 similar texts 200,000 values inside a signed 64-bit integer', () => {
    const seen = new Set<bigint>();
    for (let i = 0; i < 100_000; i++) {
      seen.add(hash64(`9:order.pay1:-order-${i}`));
      seen.add(hash64(`9:order.pay1:-${i}-redro`));
    }
    expect(seen.size).toBe(200_000);
    for (const value of seen) expect(BigInt.asIntN(64, value)).toBe(value);
  });

  it('changes about half of the bits when one character changes', () => {
    let changed = 0;
    for (let i = 0; i < 1_000; i++) {
      const difference = hash64(`key-${i}-a`) ^ hash64(`key-${i}-b`);
      changed += BigInt.asUintN(64, difference).toString(2).replaceAll('0', '').length;
    }
    expect(changed / 1_000).toBeGreaterThan(28);
    expect(changed / 1_000).toBeLessThan(36);
  });
});
