/** The life of a hold: kept, lost, given away, taken away, measured. */
import { describe, expect, it } from 'vitest';
import { createGate, type LockEvent, onEvent } from '../../src/index.ts';
import { memory } from '../../src/stores/memory/index.ts';
import { turn } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { FarLocks, seeded, settled, setUp } from './support.ts';

async function recorded(work: () => Promise<void>): Promise<LockEvent[]> {
  const events: LockEvent[] = [];
  const stop = onEvent('lock', (event) => events.push(event));
  try {
    await work();
  } finally {
    stop();
  }
  return events;
}

describe('renewal', () => {
  it('10,000 releases during renewals report no false loss (redis-semaphore #205, seed 3)', async () => {
    const { gate, locks, runtime } = setUp();
    const random = seeded(3);
    const events = await recorded(async () => {
      for (let round = 0; round < 20; round++) {
        const held = await Promise.all(
          Array.from({ length: 500 }, (_, i) => gate.acquire(`x${i}`, { leaseMs: 600 })),
        );
        const ends = held.map(async (lock) => {
          await runtime.advance(0);
          for (let i = 0; i < random() * 3; i++) await Promise.resolve();
          return await lock.release();
        });
        await runtime.advance(220);
        expect(new Set(await Promise.all(ends))).toEqual(new Set(['released']));
      }
    });
    expect(events.filter(({ type }) => type === 'lost')).toEqual([]);
    expect(locks.count('release')).toBe(10_000);
  });

  it('a lock shorter than a third of its lease causes none', async () => {
    const { gate, locks, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 3_000 });
    await runtime.advance(999);
    await held.release();
    await runtime.advance(10_000);
    expect(locks.count('renew')).toBe(0);
  });

  it('a short lease is no hot loop: at most four renewals a lease (redlock-universal)', async () => {
    for (const leaseMs of [200, 500, 1_250, 2_000]) {
      const { gate, locks, runtime } = setUp();
      const held = await gate.acquire('x', { leaseMs });
      await runtime.advance(2_000);
      expect(held.isHeld()).toBe(true);
      expect(locks.count('renew')).toBeLessThanOrEqual((2_000 / leaseMs) * 4);
    }
  });

  it('joined holds are renewed, and forgotten after the last exit (redisson #6144)', async () => {
    const { gate, locks, runtime } = setUp();
    const join = { leaseMs: 600, onReentry: 'join' } as const;
    await gate.lock('x', join, () =>
      gate.lock('x', join, () =>
        gate.lock('x', join, async (lock) => {
          await runtime.advance(3_000);
          lock.assertHeld();
        }),
      ),
    );
    expect(gate.load.locksHeld).toBe(0);
    locks.reset();
    await runtime.advance(10_000);
    expect(locks.commands).toBe(0);
  });

  it('10,000 holds: none lost in five leases, full batches, at most four timers', async () => {
    const { gate, locks, runtime } = setUp();
    const holds = await Promise.all(
      Array.from({ length: 10_000 }, (_, i) => gate.acquire(`x${i}`, { leaseMs: 6_000 })),
    );
    locks.reset();
    let timersMax = 0;
    let longestMs = 0;
    for (let ms = 0; ms < 30_000; ms += 100) {
      const startMs = performance.now();
      await runtime.advance(100);
      longestMs = Math.max(longestMs, performance.now() - startMs);
      timersMax = Math.max(timersMax, runtime.pendingTimers);
    }
    expect(holds.every((held) => held.isHeld())).toBe(true);
    expect(timersMax).toBeLessThanOrEqual(4);
    const periods = 30_000 / 2_000;
    expect(locks.count('renew')).toBeLessThanOrEqual(0.02 * 10_000 * periods);
    expect(Math.max(...locks.batches)).toBeLessThanOrEqual(128);
    await Promise.all(holds.map((held) => held.release()));
    expect(gate.load.locksHeld).toBe(0);
  });
});

describe('loss', () => {
  it('is told by a promise that never rejects, and by what is left', async () => {
    const { gate, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 1_000, renew: false });
    expect(held.remainingMs()).toBe(980);
    const told = settled(held.lost);
    await runtime.advance(970);
    expect(told()).toBe(false);
    expect(held.remainingMs()).toBe(10);
    await runtime.advance(20);
    expect(await held.lost).toMatchObject({ code: 'LOCK_LOST' });
    expect(held.remainingMs()).toBe(0);
    const released = await gate.acquire('x');
    const pending = settled(released.lost);
    await released.release();
    await runtime.advance(100_000);
    expect(pending()).toBe(false);
  });

  it('is told in time while a renewal hangs: the end of the hold, and the deadline after a failure', async () => {
    const { gate, locks, runtime } = setUp();
    const short = await gate.acquire('short', { leaseMs: 3_000, maxHoldMs: 1_200 });
    const lease = await gate.acquire('lease', { leaseMs: 3_000 });
    locks.answersAfter = new Promise(() => undefined);
    await runtime.advance(1_150);
    expect(locks.count('renew')).toBeGreaterThan(0);
    const shortTold = settled(short.lost);
    const leaseTold = settled(lease.lost);
    await runtime.advance(49);
    expect(shortTold()).toBe(false);
    await runtime.advance(2);
    expect(shortTold()).toBe(true);
    await runtime.advance(2_935 - 1_201);
    expect(leaseTold()).toBe(false);
    await runtime.advance(10);
    expect(leaseTold()).toBe(true);
  });

  it('lets the next one of the process in', async () => {
    const { gate, runtime } = setUp();
    await gate.acquire('x', { leaseMs: 1_000, renew: false });
    const next = gate.acquire('x', { waitMs: 5_000 });
    await runtime.advance(1_100);
    expect((await next).isHeld()).toBe(true);
  });

  it('a renewal or release of a former holder leaves the next one alone (Truxify #9493)', async () => {
    const { gate, other, locks, runtime } = setUp();
    const former = await gate.acquire('x', { leaseMs: 1_000 });
    locks.down = true;
    await runtime.advance(1_100);
    locks.down = false;
    const next = await other.acquire('x');
    expect(await former.release()).toBe('taken');
    await runtime.advance(5_000);
    expect(next.isHeld()).toBe(true);
    expect((await locks.inner.inspect('x'))?.fence).toBe(next.fence);
  });

  it('a lost reply to a release is no reentry: others get in (redisson #4178)', async () => {
    const { gate, other, locks, runtime } = setUp();
    const held = await gate.acquire('x');
    locks.errors.set('release', [new Error('reply lost')]);
    expect(await held.release()).toBe('expired');
    await runtime.advance(100);
    const again = await gate.acquire('x');
    const waiting = other.acquire('x', { waitMs: 10_000 });
    await turn();
    await again.release();
    await runtime.advance(10);
    expect((await waiting).isHeld()).toBe(true);
  });

  it('an operator takes it away: the holder is told, the next fence is greater', async () => {
    const { gate, other, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 3_000 });
    expect(await other.forceReleaseLock('x')).toBe('released');
    const next = await other.acquire('x', { waitMs: 0 });
    expect(next.fence > held.fence).toBe(true);
    await runtime.advance(1_200);
    expect(held.isHeld()).toBe(false);
    expect(await held.release()).toBe('taken');
    expect(await other.forceReleaseLock('y')).toBe('free');
  });
});

describe('giving a lock away', () => {
  it('keeps the fence; the giver holds nothing and renews nothing', async () => {
    const { gate, other, locks, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 3_000 });
    const text = held.serialize();
    expect(held.isHeld()).toBe(false);
    expect(() => held.assertHeld()).toThrow('given away');
    expect(held.signal.aborted).toBe(false);
    expect(gate.load.locksHeld).toBe(0);
    await runtime.advance(2_000);
    const adopted = await other.adopt(text);
    expect(adopted.fence).toBe(held.fence);
    await runtime.advance(20_000);
    expect(adopted.isHeld()).toBe(true);
    await rejection(gate.acquire('x', { waitMs: 0 }), 'BUSY');
    locks.reset();
    expect(await held.release()).toBe('released');
    expect(locks.commands).toBe(0);
    expect(await adopted.release()).toBe('released');
    expect(await locks.inner.inspect('x')).toBeUndefined();
  });

  it('too late is LOCK_LOST, nonsense is OPTION_INVALID, neither sends a try', async () => {
    const { gate, other, locks, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 1_000 });
    const text = held.serialize();
    await runtime.advance(1_100);
    await rejection(other.adopt(text), 'LOCK_LOST');
    const foreign = text.replace('"far"', '"near"');
    for (const bad of ['', '{}', 'null', '[', text.replace('x', ''), foreign, 5 as never]) {
      await rejection(other.adopt(bad), 'OPTION_INVALID');
    }
    expect(locks.count('tryAcquire')).toBe(1);
    expect(() => held.serialize()).toThrow('given away');
  });
});

describe('advice', () => {
  it('measures holds in bounded memory', async () => {
    const { gate, runtime } = setUp();
    for (let i = 0; i < 1_000; i++) {
      const held = await gate.acquire(`x${i}`, { leaseMs: 200, renew: false });
      await runtime.advance(60);
      await held.release();
    }
    const stats = gate.lockStats();
    expect(stats).toHaveLength(256);
    expect(stats.at(-1)).toMatchObject({ name: 'x999', holds: 1, contendedShare: 0, leaseMs: 200 });
    expect(stats.at(-1)?.holdP99Ms).toBeGreaterThanOrEqual(60);
    expect(stats.at(-1)?.holdP99Ms).toBeLessThan(100);
  });

  it('warns once a minute of a lease that is short for its holds, and of a hot name', async () => {
    const { gate, runtime } = setUp();
    const events = await recorded(async () => {
      for (let i = 0; i < 200; i++) {
        const held = await gate.acquire('slow', { leaseMs: 1_000, renew: false });
        await runtime.advance(600);
        await held.release();
      }
      await Promise.all(
        Array.from({ length: 200 }, () => gate.lock('hot', { waitMs: 60_000 }, () => turn())),
      );
    });
    const short = events.filter(({ type }) => type === 'lease-short');
    expect(short.length).toBeGreaterThanOrEqual(1);
    expect(short.length).toBeLessThanOrEqual(2);
    expect(short[0]).toMatchObject({ lock: 'slow', leaseMs: 1_000 });
    const hot = events.filter(({ type }) => type === 'hot');
    expect(hot).toHaveLength(1);
    expect(hot[0]).toMatchObject({ lock: 'hot' });
  });
});

describe('over a store of sessions', () => {
  it('a loss that the store tells reaches the handle at once, and lets the next one in', async () => {
    const locks = new FarLocks();
    let tell: (attempt: { name: string; owner: string }) => void = () => {};
    const store = Object.assign(locks, {
      onLoss(listener: typeof tell) {
        tell = listener;
        return () => {};
      },
    });
    const gate = createGate({ records: memory(), locks: store });
    const held = await gate.acquire('x');
    const { signal } = held;
    const [attempt] = locks.tries;
    tell({ name: 'x', owner: 'somebody else' });
    expect(signal.aborted).toBe(false);
    tell(attempt as { name: string; owner: string });
    expect(signal.aborted).toBe(true);
    expect(String(signal.reason)).toContain('session-ended');
    expect(locks.count('renew')).toBe(0);
    expect(gate.load.locksHeld).toBe(0);
    const next = await gate.acquire('x');
    expect(next.isHeld()).toBe(true);
    tell(attempt as { name: string; owner: string }); // Told twice: the next one is not meant.
    expect(next.isHeld()).toBe(true);
    await next.release();
  });
});

describe('over a store that is down', () => {
  it('79: asking who holds it ends, also where the client waits for the server without end', async () => {
    const { gate, locks, runtime } = setUp();
    locks.inspect = () => new Promise(() => {});
    const asked = rejection(gate.inspectLock('x'), 'STORE_UNAVAILABLE');
    await runtime.advance(5_000);
    await asked;
  });

  it('asking who holds it throws, it does not say free (redlock-universal)', async () => {
    const locks = new FarLocks();
    const gate = createGate({ records: memory(), locks });
    locks.down = true;
    await expect(gate.inspectLock('x')).rejects.toThrow('store is down');
  });

  it('a hold ends by the local deadline, with nothing unhandled (redis-semaphore #199)', async () => {
    const { gate, locks, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 3_000 });
    locks.down = true;
    await runtime.advance(2_950);
    expect(held.isHeld()).toBe(false);
    await runtime.advance(60_000);
    locks.down = false;
    expect((await gate.acquire('x')).isHeld()).toBe(true);
  });

  it('10 minutes of waiting leave nothing on the heap (node-redlock #149)', async () => {
    const { gate, other, runtime } = setUp();
    await gate.acquire('x');
    const waiting = rejection(other.acquire('x', { waitMs: 600_000 }), 'BUSY');
    await runtime.advance(1_000);
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    await runtime.advance(599_100);
    globalThis.gc?.();
    await waiting;
    if (globalThis.gc !== undefined) {
      expect(process.memoryUsage().heapUsed - before).toBeLessThan(1_000_000);
    }
    expect(runtime.pendingTimers).toBeLessThanOrEqual(3);
  });
});
