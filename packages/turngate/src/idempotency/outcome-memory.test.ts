import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualRuntime } from '../../test/support/clock.ts';
import type { StoredRecord } from '../contract/record-store.ts';
import { OutcomeMemory } from './outcome-memory.ts';

const runtime = new ManualRuntime();

function record(result: string, retentionMs = 10_000): StoredRecord {
  const firstProcessedAtMs = runtime.wallMs();
  const expiresAtMs = firstProcessedAtMs + retentionMs;
  return { state: 'done', fingerprint: 'f', owner: 'o', result, firstProcessedAtMs, expiresAtMs };
}

describe('the memory of outcomes', () => {
  it('never holds more characters than it may, whatever is put in and read', () => {
    const step = fc.record({
      key: fc.integer({ min: 0, max: 30 }),
      size: fc.nat(1_500),
      read: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const charsMax = 8_000;
        const memory = new OutcomeMemory(charsMax, runtime);
        const seen = new Map<string, number>();
        for (const { key, size, read } of steps) {
          if (read) memory.get(`k${key}`);
          else memory.add(`k${key}`, record('x'.repeat(size)));
          seen.set(`k${key}`, size);
          let chars = 0;
          for (const name of seen.keys()) chars += memory.get(name)?.result.length ?? 0;
          expect(chars).toBeLessThanOrEqual(charsMax);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('drops the one not used for longest', () => {
    const memory = new OutcomeMemory(8_000, runtime);
    for (const key of ['a', 'b', 'c']) memory.add(key, record('x'.repeat(600)));
    memory.get('a');
    for (let i = 0; i < 8; i++) memory.add(`n${i}`, record('x'.repeat(600)));
    expect(memory.get('a')).toBeDefined();
    expect(memory.get('b')).toBeUndefined();
  });

  it('takes no giant', () => {
    const memory = new OutcomeMemory(8_000, runtime);
    memory.add('small', record('x'));
    memory.add('giant', record('x'.repeat(2_000)));
    expect(memory.get('giant')).toBeUndefined();
    expect(memory.get('small')).toBeDefined();
  });

  it('forgets a record long before the store does', async () => {
    const memory = new OutcomeMemory(8_000, runtime);
    memory.add('k', record('x', 10_000));
    await runtime.advance(4_999);
    expect(memory.get('k')).toBeDefined();
    await runtime.advance(1);
    expect(memory.get('k')).toBeUndefined();
    const old = record('x', 10_000);
    await runtime.advance(6_000);
    memory.add('late', old);
    expect(memory.get('late')).toBeUndefined();
  });
});
