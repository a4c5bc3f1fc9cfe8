import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChurnMap } from './churn-map.ts';
import { LruMap } from './lru-map.ts';

const act = fc.record({
  what: fc.constantFrom('set', 'get', 'has', 'delete', 'use'),
  key: fc.integer({ min: 0, max: 200 }).map(String),
});
const acts = fc.array(act, { maxLength: 2_000, size: 'max' });

describe('a map for keys that come and go', () => {
  it('answers like a Map, growing and shrinking', () => {
    fc.assert(
      fc.property(acts, (given) => {
        const model = new Map<string, number>();
        const map = new ChurnMap<number>();
        given.forEach(({ what, key }, i) => {
          if (what === 'set') {
            model.set(key, i);
            map.set(key, i);
          } else if (what === 'delete') expect(map.delete(key)).toBe(model.delete(key));
          else if (what === 'has') expect(map.has(key)).toBe(model.has(key));
          else expect(map.get(key)).toBe(model.get(key));
          expect(map.size).toBe(model.size);
        });
        expect(new Map(map.entries())).toEqual(model);
      }),
      { numRuns: 100 },
    );
  });

  it('keeps 20,000 keys apart and gives all of them up again', () => {
    const map = new ChurnMap<number>();
    for (let i = 0; i < 20_000; i++) map.set(`order:${i}`, i);
    for (let i = 0; i < 20_000; i++) expect(map.get(`order:${i}`)).toBe(i);
    for (let i = 0; i < 20_000; i++) expect(map.delete(`order:${i}`)).toBe(true);
    expect(map.size).toBe(0);
    expect(map.entries()).toEqual([]);
  });
});

describe('a map in the order of use', () => {
  it('keeps the order a Map keeps when what is used is taken out and put in again', () => {
    fc.assert(
      fc.property(acts, (given) => {
        const model = new Map<string, number>();
        const map = new LruMap<number>();
        given.forEach(({ what, key }, i) => {
          const known = model.get(key);
          if (what === 'set') {
            model.delete(key);
            model.set(key, i);
            map.set(key, i);
          } else if (what === 'use') {
            if (known !== undefined) {
              model.delete(key);
              model.set(key, known);
            }
            expect(map.use(key)).toBe(known);
          } else if (what === 'delete') expect(map.delete(key)).toBe(model.delete(key));
          else expect(map.get(key)).toBe(known);
          expect(map.size).toBe(model.size);
          expect(map.oldest()).toEqual([...model][0]);
        });
        expect(map.entries()).toEqual([...model]);
      }),
      { numRuns: 50 },
    );
  });
});
