/** The arithmetic of buckets, and the store of one process. */
import { describe, expect, it } from 'vitest';
import { systemRuntime } from '../runtime/runtime.ts';
import { memoryTokenBuckets } from './memory-buckets.ts';

/** A small seeded generator: the seed is in the test's name. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Grant {
  readonly atMicros: number;
  readonly tokens: number;
}

function setUp() {
  let micros = 0;
  const runtime = { ...systemRuntime, monoMs: () => micros / 1_000 };
  const buckets = memoryTokenBuckets({ runtime });
  const pass = (more: number): void => {
    micros += more;
  };
  return { buckets, pass, now: () => micros };
}

describe('token bucket', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    it(`grants no more than capacity + rate x time over any window (seed ${seed})`, async () => {
      const random = chance(seed);
      const { buckets, pass, now } = setUp();
      const capacity = 1 + Math.floor(random() * 20);
      const refillPerSecond = Math.round(random() * 5_000 + 1) / 1_000;
      const grants: Grant[] = [];
      for (let i = 0; i < 600; i++) {
        pass(Math.floor(random() ** 4 * 10_000_000));
        const tokens = 1 + Math.floor(random() * capacity);
        const { allowed } = await buckets.take('k', { tokens, capacity, refillPerSecond });
        if (allowed) grants.push({ atMicros: now(), tokens });
      }
      expect(grants.length).toBeGreaterThan(20);
      let worst = Number.NEGATIVE_INFINITY; // Tokens over the limit; at most a rounding error.
      for (let from = 0; from < grants.length; from++) {
        let sum = 0;
        for (let to = from; to < grants.length; to++) {
          const [first, last] = [grants[from], grants[to]] as [Grant, Grant];
          sum += last.tokens;
          const seconds = (last.atMicros - first.atMicros) / 1_000_000;
          worst = Math.max(worst, sum - capacity - refillPerSecond * seconds);
        }
      }
      expect(worst).toBeLessThan(1e-6);
    });
  }

  it('loses nothing to rounding: a busy bucket grants its whole rate', async () => {
    const { buckets, pass } = setUp();
    const options = { capacity: 1, refillPerSecond: 0.333 };
    let granted = 0;
    for (let i = 0; i < 1_000_000; i += 1) {
      pass(1_003); // Less than a millisecond's worth of a token each time.
      if ((await buckets.take('k', options)).allowed) granted++;
    }
    // 1003 seconds at 0.333 and the one it began with; a grant is late by up to one step.
    expect(granted).toBeGreaterThanOrEqual(334);
    expect(granted).toBeLessThanOrEqual(335);
  });

  it('retryAfterMs is the time after which it is allowed, and not much longer', async () => {
    const { buckets, pass } = setUp();
    const options = { capacity: 10, refillPerSecond: 3, tokens: 7 };
    expect(await buckets.take('k', options)).toEqual({
      allowed: true,
      remaining: 3,
      retryAfterMs: 0,
    });
    const refused = await buckets.take('k', options);
    expect(refused).toEqual({ allowed: false, remaining: 3, retryAfterMs: 1_334 });
    pass((refused.retryAfterMs - 1) * 1_000);
    expect((await buckets.take('k', options)).allowed).toBe(false);
    pass(1_000);
    expect((await buckets.take('k', options)).allowed).toBe(true);
  });

  it('keys have buckets of their own, and full ones are forgotten', async () => {
    const { buckets, pass } = setUp();
    const options = { capacity: 1, refillPerSecond: 1 };
    for (let i = 0; i < 1_000; i++) {
      expect((await buckets.take(`key ${i}`, options)).allowed).toBe(true);
    }
    expect(buckets.size).toBe(1_000);
    pass(1_000_000);
    for (let i = 0; i < 1_000; i++) await buckets.take('one', options);
    expect(buckets.size).toBe(1);
  });

  it('a smaller capacity counts at once', async () => {
    const { buckets } = setUp();
    await buckets.take('k', { capacity: 100, refillPerSecond: 1 });
    const answer = await buckets.take('k', { capacity: 5, refillPerSecond: 1 });
    expect(answer.remaining).toBe(4);
  });

  it('bad options are refused', async () => {
    const { buckets } = setUp();
    const good = { capacity: 5, refillPerSecond: 1 };
    const bad = [
      {},
      { capacity: 5 },
      { refillPerSecond: 1 },
      { ...good, capacity: 0 },
      { ...good, capacity: 1_000_001 },
      { ...good, tokens: 0 },
      { ...good, tokens: 6 },
      { ...good, refillPerSecond: 0 },
      { ...good, refillPerSecond: 0.0001 },
      { ...good, refillPerSecond: Number.NaN },
      { ...good, refillPerSecond: 1_000_001 },
      { ...good, burst: 1 },
    ];
    for (const options of bad) {
      await expect(buckets.take('k', options as never), JSON.stringify(options)).rejects.toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      );
    }
    await expect(buckets.take('', good)).rejects.toThrow();
  });
});
