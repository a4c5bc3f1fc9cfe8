/** Read/write locks, semaphores and several names at once over the one machinery. */
import { describe, expect, it } from 'vitest';
import { turn } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { settled, setUp } from './support.ts';

const read = { mode: 'read', waitMs: 60_000 } as const;
const write = { mode: 'write', waitMs: 60_000 } as const;

describe('read/write', () => {
  it('readers of one process and of several share; a writer waits for all of them', async () => {
    const { gate, other, runtime } = setUp();
    const readers = await Promise.all([
      gate.acquire('x', read),
      gate.acquire('x', read),
      other.acquire('x', read),
    ]);
    expect(readers.every((reader) => reader.isHeld())).toBe(true);
    expect(gate.load.locksHeld).toBe(2);
    const writer = gate.acquire('x', write);
    const served = settled(writer);
    for (const reader of readers) {
      await runtime.advance(10);
      expect(served()).toBe(false);
      expect(await reader.release()).toBe('released');
    }
    await runtime.advance(5);
    expect((await writer).isHeld()).toBe(true);
    await rejection(other.acquire('x', { mode: 'read', waitMs: 0 }), 'BUSY');
    await (await writer).release();
    expect((await other.acquire('x', { mode: 'read', waitMs: 0 })).isHeld()).toBe(true);
  });

  it('a writer among steadily overlapping readers waits for one reader, not for all (redis-py #3786)', async () => {
    const { gate, other, runtime } = setUp();
    let readersAfter = 0;
    let written = false;
    const flow = async (side: typeof gate): Promise<void> => {
      for (let i = 0; i < 20; i++) {
        await side.lock('x', read, async () => {
          if (written) readersAfter++;
          await runtime.advance(5);
        });
      }
    };
    const readers = [flow(gate), flow(other), flow(gate)];
    await turn();
    const before = runtime.monoMs();
    const writer = await other.acquire('x', write);
    expect(runtime.monoMs() - before).toBeLessThanOrEqual(50);
    written = true;
    await writer.release();
    await Promise.all(readers);
    expect(readersAfter).toBeGreaterThan(30);
  });

  it('many waiting readers of a process cost one waiting attempt and are all let in', async () => {
    const { gate, other, locks, runtime } = setUp();
    const writer = await other.acquire('x', write);
    const readers = Array.from({ length: 50 }, () => gate.acquire('x', read));
    await turn();
    expect((await locks.inner.inspect('x'))?.waiters).toBe(1);
    locks.reset();
    await runtime.advance(10_000);
    expect(locks.count('tryAcquire')).toBeLessThanOrEqual(11);
    await writer.release();
    await runtime.advance(20);
    const held = await Promise.all(readers);
    expect((await locks.inner.inspect('x'))?.holders).toBe(50);
    await Promise.all(held.map((reader) => reader.release()));
    expect(await locks.inner.inspect('x')).toBeUndefined();
  });

  it('a flow that writes may join with a read; one that reads may not write', async () => {
    const { gate } = setUp();
    await gate.lock('x', write, async (outer) => {
      await gate.lock('x', { mode: 'read', onReentry: 'join' }, async (inner) => {
        expect(inner.fence).toBe(outer.fence);
      });
    });
    await gate.lock('x', read, async () => {
      await rejection(gate.acquire('x', { mode: 'write', onReentry: 'join' }), 'LOCK_REENTERED');
    });
  });
});

describe('semaphore', () => {
  it('never more than limit, several at once, first come first served', async () => {
    const { gate, other, runtime } = setUp();
    let out = 0;
    let most = 0;
    const order: number[] = [];
    const flows = Array.from({ length: 60 }, (_, i) => {
      const take = 1 + (i % 3);
      const permits = { take, limit: 4 };
      return (i % 2 === 0 ? gate : other).lock('x', { permits, waitMs: 60_000 }, async () => {
        order.push(i);
        out += take;
        most = Math.max(most, out);
        await turn();
        out -= take;
      });
    });
    let done = false;
    void Promise.all(flows).then(() => {
      done = true;
    });
    while (!done) await runtime.advance(5);
    await Promise.all(flows);
    expect(most).toBeLessThanOrEqual(4);
    expect(most).toBeGreaterThan(2);
    const even = order.filter((i) => i % 2 === 0);
    expect(even).toEqual([...even].sort((a, b) => a - b));
  });

  it('a permit is leased and renewed like a lock; releasing an expired one says so', async () => {
    const { gate, runtime, locks } = setUp();
    const permits = { limit: 1 };
    const kept = await gate.acquire('x', { permits, leaseMs: 600 });
    await runtime.advance(5_000);
    expect(kept.isHeld()).toBe(true);
    await kept.release();
    const ended = await gate.acquire('x', { permits, leaseMs: 600, renew: false });
    await runtime.advance(700);
    expect(ended.isHeld()).toBe(false);
    const next = await gate.acquire('x', { permits });
    expect(await ended.release()).toBe('expired');
    expect(next.isHeld()).toBe(true);
    expect((await locks.inner.inspect('x'))?.holders).toBe(1);
  });

  it('waitMs 0 is one try', async () => {
    const { gate, locks } = setUp();
    const permits = { limit: 2 };
    await gate.acquire('x', { permits });
    await gate.acquire('x', { permits, waitMs: 0 });
    locks.reset();
    await rejection(gate.acquire('x', { permits, waitMs: 0 }), 'BUSY');
    expect(locks.commands).toBe(1);
  });

  it('bad permits are refused before the store is asked', async () => {
    const { gate, locks } = setUp();
    for (const options of [
      { permits: {} },
      { permits: { limit: 0 } },
      { permits: { limit: 2, take: 3 } },
      { permits: { limit: 2, take: 0.5 } },
      { permits: 3 },
      { permits: { limit: 2 }, mode: 'read' },
      { mode: 'both' },
      { handOver: 'yes' },
      { handOver: { turns: -1 } },
      { fair: 1 },
    ]) {
      await rejection(gate.acquire('x', options as never), 'OPTION_INVALID');
    }
    expect(locks.commands).toBe(0);
  });
});

describe('several names at once', () => {
  it('are all held or none, and released together', async () => {
    const { gate, other, locks } = setUp();
    const group = await gate.acquire(['b', 'a', 'b']);
    expect(group.names).toEqual(['a', 'b']);
    expect(group.isHeld()).toBe(true);
    expect(group.fenceOf('a')).toBe(group.locks[0]?.fence);
    await rejection(other.acquire(['c', 'b'], { waitMs: 0 }), 'BUSY');
    expect((await other.acquire('c', { waitMs: 0 })).isHeld()).toBe(true);
    expect(await group.release()).toBe('released');
    expect(group.isHeld()).toBe(false);
    expect(await locks.inner.inspect('a')).toBeUndefined();
    expect(await locks.inner.inspect('b')).toBeUndefined();
    await rejection(gate.acquire([]), 'OPTION_INVALID');
    await rejection(gate.acquire(['a', '']), 'OPTION_INVALID');
  });

  it('opposite orders do not deadlock', async () => {
    const { gate, other, runtime } = setUp();
    let inside = 0;
    const work = async (): Promise<void> => {
      expect(++inside).toBe(1);
      await turn();
      inside--;
    };
    const flows = Array.from({ length: 30 }, (_, i) =>
      i % 2 === 0
        ? gate.lock(['a', 'b'], { waitMs: 60_000 }, work)
        : other.lock(['b', 'a'], { waitMs: 60_000 }, work),
    );
    const all = Promise.all(flows);
    const done = settled(all);
    for (let i = 0; i < 1_000 && !done(); i++) await runtime.advance(5);
    expect(await all).toHaveLength(30);
  });

  it('have one deadline, and what was taken is given back at its end', async () => {
    const { gate, other, runtime, locks } = setUp();
    const held = await other.acquire('b');
    const busy = rejection(gate.acquire(['a', 'b'], { waitMs: 1_000 }), 'BUSY');
    await runtime.advance(1_010);
    await busy;
    expect(await locks.inner.inspect('a')).toBeUndefined();
    await held.release();
  });

  it('losing one is losing all', async () => {
    const { gate, runtime, locks } = setUp();
    let aborted = false;
    const lost = rejection(
      gate.lock(['a', 'b'], { leaseMs: 3_000 }, async (group) => {
        group.signal.addEventListener('abort', () => {
          aborted = true;
        });
        await locks.inner.forceRelease?.('b');
        await locks.inner.tryAcquire({ name: 'b', owner: 'thief', leaseMs: 60_000 });
        await runtime.advance(1_500);
        expect(() => group.assertHeld()).toThrow('b');
        expect((await group.lost).code).toBe('LOCK_LOST');
      }),
      'LOCK_LOST',
    );
    await lost;
    expect(aborted).toBe(true);
    expect(await locks.inner.inspect('a')).toBeUndefined();
  });

  it('a flow knows what it holds of them', async () => {
    const { gate } = setUp();
    await gate.lock(['a', 'b'], async () => {
      await rejection(gate.acquire('a'), 'LOCK_REENTERED');
      await rejection(gate.acquire(['b', 'c']), 'LOCK_REENTERED');
      expect((await gate.acquire('c')).isHeld()).toBe(true);
    });
  });
});
