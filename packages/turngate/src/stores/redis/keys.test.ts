import { describe, expect, it } from 'vitest';
import { checkPrefix, LockKeys, tagOf } from './keys.ts';

describe('names of keys', () => {
  it('are the same in every version and process', () => {
    expect(new LockKeys('turngate:').mutex('order:42')).toEqual([
      'turngate:{74}:lock:order:42',
      'turngate:{74}:queue:order:42',
      'turngate:{74}:waiters:order:42',
      'turngate:{74}:fence',
    ]);
    expect(['', 'a', 'order:42', 'é', '锁', '🙂'].map(tagOf)).toEqual([124, 52, 74, 82, 79, 124]);
  });

  it('use all 128 tags evenly', () => {
    const counts = new Array<number>(128).fill(0);
    for (let i = 0; i < 128_000; i++) counts[tagOf(`order:${i}`)]!++;
    expect(Math.min(...counts)).toBeGreaterThan(800);
    expect(Math.max(...counts)).toBeLessThan(1_200);
  });

  it('have one hash tag, the first, whatever braces a name has', () => {
    for (const name of ['{a}', '}{', '{}', 'a{b}c{d}']) {
      for (const key of new LockKeys('p:').mutex(name)) {
        const [, tag] = /^p:\{(\d+)\}:/.exec(key) ?? [];
        expect(tag).toBe(String(tagOf(name)));
      }
    }
  });

  it('differ for names that UTF-8 cannot tell apart', () => {
    const names = ['\ud800', '\ud801', '\udc00', '\ufffd', '%', '%d800;', '%25;', '🙂', '\ud83d'];
    const bytes = names.map((name) => Buffer.from(new LockKeys('').lock(name)).toString('hex'));
    expect(new Set(bytes).size).toBe(names.length);
  });

  it('allow no braces in a prefix', () => {
    expect(() => checkPrefix('prefix', 'a{b')).toThrow(/braces/);
    expect(() => checkPrefix('prefix', 7)).toThrow(/prefix/);
    expect(checkPrefix('prefix', '')).toBe('');
  });
});
