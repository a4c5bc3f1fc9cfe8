/** A hot name in segments. */
import { describe, expect, it } from 'vitest';
import { createGate, type Gate, segmented } from '../../src/index.ts';
import { memory, memoryLocks } from '../../src/stores/memory/index.ts';
import { door, pause, until } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';

const openGate = (locks = memoryLocks()): Gate<unknown> =>
  createGate({ records: memory(), locks }) as Gate<unknown>;

describe('segmented lock', () => {
  it('gives a key the same segment in every process, and spreads keys over all', () => {
    const [here, there] = [1, 2].map(() => segmented(openGate(), 'stock', { segments: 8 }));
    const counts = new Array<number>(8).fill(0);
    for (let i = 0; i < 4_000; i++) {
      const index = here?.segmentOf(`sku ${i}`) as number;
      expect(there?.segmentOf(`sku ${i}`)).toBe(index);
      counts[index] = (counts[index] as number) + 1;
    }
    // Pinned: another mapping in the next version would break exclusion during a rolling deploy.
    expect(['a', 'b', 'sku 1'].map((key) => here?.segmentOf(key))).toMatchInlineSnapshot(`
      [
        5,
        1,
        1,
      ]
    `);
    for (const count of counts) expect(count).toBeGreaterThan(350);
  });

  it('one at a time per segment, several at a time in all', async () => {
    const locks = memoryLocks();
    const lines = [1, 2].map(() => segmented(openGate(locks), 'stock', { segments: 4 }));
    const inside = new Array<number>(4).fill(0);
    let together = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        (lines[i % 2] as (typeof lines)[number]).withAny(
          { waitMs: 20_000 },
          async ({ index, lock }) => {
            expect(lock.name).toBe(`stock#${index}`);
            inside[index] = (inside[index] as number) + 1;
            expect(inside[index]).toBe(1);
            most = Math.max(most, ++together);
            await pause(1);
            together--;
            inside[index] = (inside[index] as number) - 1;
          },
        ),
      ),
    );
    expect(most).toBe(4);
  });

  it('any: the less used of two is taken', async () => {
    const gate = openGate();
    // Chance always says the first and the one after it.
    const runtime = { ...(await import('../../src/runtime/runtime.ts')).systemRuntime };
    const line = segmented(gate, 'stock', {
      segments: 4,
      runtime: { ...runtime, random: () => 0 },
    });
    const [open, taken] = [door(), [] as number[]];
    const body = async ({ index }: { index: number }): Promise<void> => {
      taken.push(index);
      await open.opened;
    };
    const calls = [line.withAny({}, body), line.withAny({}, body)];
    await until('both are inside', () => taken.length === 2);
    expect(taken).toEqual([0, 1]);
    open.open();
    await Promise.all(calls);
  });

  it('all: alone, without deadlock, with growing fences of every segment', async () => {
    const locks = memoryLocks();
    const lines = [1, 2, 3].map(() => segmented(openGate(locks), 'stock', { segments: 3 }));
    let inside = 0;
    let alone = 0;
    const some = async (): Promise<void> => {
      inside++;
      expect(alone).toBe(0);
      await pause(1);
      inside--;
    };
    await Promise.all(
      Array.from({ length: 60 }, (_, i) => {
        const line = lines[i % 3] as (typeof lines)[number];
        if (i % 5 > 0) return line.withKey(`key ${i}`, { waitMs: 20_000 }, some);
        return line.withAll({ waitMs: 20_000 }, async (segments) => {
          expect(segments.map(({ index }) => index)).toEqual([0, 1, 2]);
          expect([++alone, inside]).toEqual([1, 0]);
          await pause(1);
          alone--;
        });
      }),
    );
  });

  it('all: one budget for all segments, and nothing stays held when it is not enough', async () => {
    const gate = openGate();
    const line = segmented(gate, 'stock', { segments: 3 });
    const [first, held] = [await gate.acquire('stock#0'), await gate.acquire('stock#2')];
    const startMs = performance.now();
    const body = async (): Promise<void> => expect.unreachable();
    const all = rejection(line.withAll({ waitMs: 1_000 }, body), 'BUSY');
    await pause(700);
    await first.release();
    await all;
    expect(performance.now() - startMs).toBeLessThan(1_600); // Not another second for #2.
    expect(gate.load.locksHeld).toBe(1);
    await held.release();
    expect(await line.withAll({ waitMs: 0 }, async () => 'all')).toBe('all');
    expect(gate.load.locksHeld).toBe(0);
  });

  it('a lock lost under the body is told after it; an error of the body goes first', async () => {
    const gate = openGate();
    const line = segmented(gate, 'stock', { segments: 2 });
    const options = { leaseMs: 200, renew: false };
    const late = line.withAll(options, () => pause(300));
    await rejection(late, 'LOCK_LOST');
    const failing = line.withAll(options, async () => {
      await pause(300);
      throw new Error('mine');
    });
    await expect(failing).rejects.toThrow('mine');
  });

  it('bad options are refused', async () => {
    const gate = openGate();
    for (const options of [{}, { segments: 1 }, { segments: 2.5 }, { segments: 2, more: 1 }]) {
      expect(() => segmented(gate, 'stock', options as never)).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      );
    }
    const line = segmented(gate, 'stock', { segments: 2 });
    await rejection(line.withKey('a', {}, undefined as never), 'OPTION_INVALID');
    await rejection(
      line.withAll({ waitMs: -1 }, async () => undefined),
      'OPTION_INVALID',
    );
  });
});
