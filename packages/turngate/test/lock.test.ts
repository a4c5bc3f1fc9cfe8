/** The lock client over the memory store and over stores that fail in arranged ways. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { LockAnswer, LockAttempt, LockGrant, LockStore } from '../src/contract/index.ts';
import { createGate, type Gate, type LockEvent, onEvent } from '../src/index.ts';
import { memory, memoryLocks } from '../src/stores/memory/index.ts';
import { startChild } from './support/child.ts';
import { door, ManualRuntime, turn, until } from './support/clock.ts';
import { rejection } from './support/errors.ts';

const events: LockEvent[] = [];
let stop: () => void;
beforeAll(() => {
  stop = onEvent('lock', (event) => events.push(event));
});
afterAll(() => stop());
beforeEach(() => {
  events.length = 0;
});

/** A store whose verbs can be counted, failed and delayed; otherwise memory's. */
class TestLocks implements LockStore {
  readonly name = 'test';
  readonly capabilities;
  readonly inner: LockStore;
  acquires = 0;
  renewBatches: number[] = [];
  releases: string[] = [];
  failing = false;
  /** Holds back answers to acquire until opened. */
  slowAcquire: Promise<unknown> = Promise.resolve();

  constructor(runtime?: ManualRuntime) {
    this.inner = memoryLocks(runtime === undefined ? {} : { runtime });
    this.capabilities = this.inner.capabilities;
  }

  async tryAcquire(attempt: LockAttempt): Promise<LockGrant> {
    this.acquires++;
    this.check();
    const grant = await this.inner.tryAcquire(attempt);
    await this.slowAcquire;
    return grant;
  }

  async renew(attempts: readonly LockAttempt[]): Promise<readonly LockAnswer[]> {
    this.renewBatches.push(attempts.length);
    this.check();
    return await this.inner.renew(attempts);
  }

  async release(attempt: LockAttempt): Promise<LockAnswer> {
    this.releases.push(attempt.name);
    this.check();
    return await this.inner.release(attempt);
  }

  async inspect(name: string) {
    this.check();
    return await this.inner.inspect(name);
  }

  private check(): void {
    if (this.failing) throw new Error('store is down');
  }
}

function setUp(): {
  runtime: ManualRuntime;
  locks: TestLocks;
  gate: Gate<unknown>;
  other: Gate<unknown>;
} {
  const runtime = new ManualRuntime();
  const locks = new TestLocks(runtime);
  const open = (): Gate<unknown> =>
    createGate({ records: memory({ runtime }), locks, runtime }) as Gate<unknown>;
  return { runtime, locks, gate: open(), other: open() };
}

describe('taking turns', () => {
  it('flows of one process are served first come first served, one at a time', async () => {
    const { gate, locks } = setUp();
    const order: number[] = [];
    let inside = 0;
    const flows = Array.from({ length: 30 }, (_, i) =>
      gate.lock('x', async () => {
        expect(++inside).toBe(1);
        await turn();
        inside--;
        order.push(i);
      }),
    );
    await Promise.all(flows);
    expect(order).toEqual(Array.from({ length: 30 }, (_, i) => i));
    expect(locks.acquires).toBe(4); // Handed over inside: nine turns for each grant of the store.
    expect(gate.load.locksHeld).toBe(0);
  });

  it('two processes exclude each other and both get their turn', async () => {
    const { gate, other, runtime } = setUp();
    const held = await gate.acquire('x');
    const waiting = other.acquire('x');
    await runtime.advance(1_000);
    await held.release();
    await runtime.advance(300);
    const second = await waiting;
    expect(second.fence > held.fence).toBe(true);
    expect(second.isHeld()).toBe(true);
    await second.release();
  });

  it('is BUSY at the end of waitMs: behind this process, and behind another', async () => {
    const { gate, other, runtime } = setUp();
    const held = await gate.acquire('x');
    for (const side of [gate, other]) {
      const busy = rejection(side.acquire('x', { waitMs: 1_000 }), 'BUSY');
      let settled = false;
      void busy.then(() => {
        settled = true;
      });
      await runtime.advance(990);
      expect(settled).toBe(false);
      await runtime.advance(20);
      expect(await busy).toMatchObject({ outcome: 'not-applied', retryAfterMs: 1_000 });
    }
    await held.release();
    expect((await gate.acquire('x', { waitMs: 0 })).isHeld()).toBe(true);
  });

  it('waitMs 0 is exactly one try, and none behind this process', async () => {
    const { gate, other, locks } = setUp();
    await gate.acquire('x');
    locks.acquires = 0;
    await rejection(other.acquire('x', { waitMs: 0 }), 'BUSY');
    expect(locks.acquires).toBe(1);
    await rejection(gate.acquire('x', { waitMs: 0 }), 'BUSY');
    expect(locks.acquires).toBe(1);
  });

  it('a waiter in line that gives up does not hold up those behind it', async () => {
    const { gate, runtime } = setUp();
    const held = await gate.acquire('x', { maxHoldMs: 100_000 });
    const leaving = rejection(gate.acquire('x', { waitMs: 100 }), 'BUSY');
    const staying = gate.acquire('x', { waitMs: 60_000 });
    await runtime.advance(200);
    await leaving;
    await held.release();
    await turn();
    expect((await staying).isHeld()).toBe(true);
  });

  it('a store that fails is STORE_UNAVAILABLE, never BUSY, and what it may have granted is taken back', async () => {
    const { gate, locks, runtime } = setUp();
    locks.failing = true;
    const error = await rejection(gate.acquire('x'), 'STORE_UNAVAILABLE');
    expect(error['cause']).toMatchObject({ message: 'store is down' });
    await rejection(gate.inspectLock('x'));
    locks.failing = false;
    await runtime.advance(5_000);
    expect(locks.releases.length).toBeGreaterThan(1); // Again until it worked.
    expect((await gate.acquire('x')).isHeld()).toBe(true);
  });
});

describe('aborting', () => {
  it('ends the waiting with the signal’s reason and leaves no place in line', async () => {
    const { gate, other, runtime, locks } = setUp();
    const held = await gate.acquire('x', { leaseMs: 60_000 });
    const reason = new Error('enough');
    for (const side of [gate, other]) {
      const controller = new AbortController();
      const waiting = rejection(side.acquire('x', { signal: controller.signal }), 'ABORTED');
      await runtime.advance(50);
      controller.abort(reason);
      expect((await waiting)['cause']).toBe(reason);
    }
    await held.release();
    await turn();
    const next = await gate.acquire('x', { waitMs: 0 });
    await next.release();
    await runtime.advance(60_000);
    expect(runtime.pendingTimers).toBe(0);
    locks.acquires = 0;
    await rejection(gate.acquire('x', { signal: AbortSignal.abort(reason) }), 'ABORTED');
    expect(locks.acquires).toBe(0);
  });

  it('a grant that comes after the abort is released at once', async () => {
    const { gate, other, locks } = setUp();
    const answer = door();
    locks.slowAcquire = answer.opened;
    const controller = new AbortController();
    const waiting = rejection(gate.acquire('x', { signal: controller.signal }), 'ABORTED');
    await turn();
    controller.abort();
    await waiting;
    expect(await locks.inner.inspect('x')).toBeDefined();
    answer.open();
    await turn();
    expect(await locks.inner.inspect('x')).toBeUndefined();
    locks.slowAcquire = Promise.resolve();
    expect((await other.acquire('x', { waitMs: 0 })).isHeld()).toBe(true);
  });

  it('a store that never answers ends in STORE_UNAVAILABLE, a late grant is released', async () => {
    const { gate, locks, runtime } = setUp();
    const answer = door();
    locks.slowAcquire = answer.opened;
    const waiting = rejection(gate.acquire('x'), 'STORE_UNAVAILABLE');
    await runtime.advance(5_000);
    await waiting;
    answer.open();
    await turn();
    expect(await locks.inner.inspect('x')).toBeUndefined();
  });
});

describe('keeping it', () => {
  it('renewal keeps a 300 ms lease for seconds, with at most four calls per lease', async () => {
    const { gate, locks, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 300 });
    await runtime.advance(3_000);
    expect(held.isHeld()).toBe(true);
    expect(held.signal.aborted).toBe(false);
    expect((await locks.inner.inspect('x'))?.fence).toBe(held.fence);
    expect(locks.renewBatches.length).toBeLessThanOrEqual(40);
    expect(await held.release()).toBe('released');
    await runtime.advance(5_000); // Timers that are not needed any more run out; none is renewed.
    expect(runtime.pendingTimers).toBe(0);
  });

  it('500 holds are renewed in batches, not one by one', async () => {
    const { gate, locks, runtime } = setUp();
    const holds = await Promise.all(
      Array.from({ length: 500 }, (_, i) => gate.acquire(`x${i}`, { leaseMs: 3_000 })),
    );
    await runtime.advance(9_000);
    expect(holds.every((held) => held.isHeld())).toBe(true);
    const { renewBatches } = locks;
    expect(Math.max(...renewBatches)).toBeLessThanOrEqual(128);
    expect(renewBatches.length).toBeLessThanOrEqual(4 * 10);
    await Promise.all(holds.map((held) => held.release()));
    expect(gate.load.locksHeld).toBe(0);
  });

  it('renew: false loses it at the end of the lease', async () => {
    const { gate, locks, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 1_000, renew: false });
    const { signal } = held;
    await runtime.advance(1_000);
    expect(locks.renewBatches).toEqual([]);
    expect(held.isHeld()).toBe(false);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST' });
    expect(await held.release()).toBe('expired');
  });

  it('maxHoldMs ends a hold that would be renewed for ever, with its reason', async () => {
    const { gate, other, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 500, maxHoldMs: 2_000 });
    await runtime.advance(1_900);
    expect(held.isHeld()).toBe(true);
    await runtime.advance(150);
    expect(held.isHeld()).toBe(false);
    expect(() => held.assertHeld()).toThrow('max-hold');
    expect((await other.acquire('x', { waitMs: 0 })).isHeld()).toBe(true);
  });

  it('a renewal that fails for half a lease is no loss, and is told', async () => {
    const { gate, locks, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 3_000 });
    locks.failing = true;
    await runtime.advance(1_800);
    locks.failing = false;
    await runtime.advance(10_000);
    expect(held.isHeld()).toBe(true);
    expect(events.some(({ type }) => type === 'renewal-failed')).toBe(true);
    expect(events.some(({ type }) => type === 'lost')).toBe(false);
    await held.release();
  });

  it('a store that stays down: lost at the local deadline, before the lease can have ended', async () => {
    const { gate, locks, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 3_000 });
    const { signal } = held;
    await runtime.advance(1_100); // Renewed once, about 1,000 ms in.
    locks.failing = true;
    let lostAtMs = 0;
    signal.addEventListener('abort', () => {
      lostAtMs = runtime.monoMs();
    });
    await runtime.advance(5_000);
    expect(signal.aborted).toBe(true);
    expect(lostAtMs).toBeLessThanOrEqual(1_000 + 1_100 + 3_000);
    expect(lostAtMs).toBeGreaterThan(1_000 + 1_000 + 2_500);
    expect(() => held.assertHeld()).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
    expect(await held.release()).toBe('expired');
  });

  it('somebody else’s hold is told at the next renewal, and never taken back', async () => {
    const { gate, locks, runtime } = setUp();
    const held = await gate.acquire('x', { leaseMs: 3_000 });
    const state = await locks.inner.inspect('x');
    await locks.inner.release({ name: 'x', owner: state?.owner as string, leaseMs: 3_000 });
    await locks.inner.tryAcquire({ name: 'x', owner: 'thief', leaseMs: 60_000 });
    await runtime.advance(1_100);
    expect(held.isHeld()).toBe(false);
    expect(await held.release()).toBe('taken');
    expect((await locks.inner.inspect('x'))?.owner).toBe('thief');
  });

  it('a body that ends under a lost lock is answered LOCK_LOST, its own error wins', async () => {
    const { gate, runtime } = setUp();
    const options = { leaseMs: 1_000, renew: false };
    const late = rejection(
      gate.lock('x', options, async () => runtime.advance(2_000)),
      'LOCK_LOST',
    );
    await late;
    const boom = new Error('boom');
    const failing = gate.lock('y', options, async () => {
      await runtime.advance(2_000);
      throw boom;
    });
    expect(await rejection(failing)).toBe(boom);
    expect(gate.load.locksHeld).toBe(0);
  });

  it('a blocked event loop cannot hide the loss: assertHeld compares clocks', async () => {
    const gate = createGate({ records: memory(), locks: memoryLocks() });
    const held = await gate.acquire('x', { leaseMs: 200 });
    const { signal } = held;
    const endMs = performance.now() + 230;
    while (performance.now() < endMs) {
      // Blocked: no timer runs.
    }
    expect(signal.aborted).toBe(false);
    expect(() => held.assertHeld()).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
    expect(signal.aborted).toBe(true);
  });

  it('the clock starts before the command is sent, so a slow grant is short', async () => {
    const { gate, locks, runtime } = setUp();
    const answer = door();
    locks.slowAcquire = answer.opened;
    const taking = gate.acquire('x', { leaseMs: 1_000, renew: false });
    await runtime.advance(600);
    answer.open();
    const held = await taking;
    expect(held.isHeld()).toBe(true);
    await runtime.advance(400);
    expect(held.isHeld()).toBe(false);
  });
});

describe('letting go', () => {
  it('can be repeated; one call to the store; the handle is then not held', async () => {
    const { gate, locks } = setUp();
    const held = await gate.acquire('x');
    const answers = await Promise.all([held.release(), held.release()]);
    expect(answers).toEqual(['released', 'released']);
    expect(locks.releases).toEqual(['x']);
    expect(held.isHeld()).toBe(false);
    expect(() => held.assertHeld()).toThrow('was released before');
  });

  it('of an expired lock is one call with a typed answer', async () => {
    const { gate, other, runtime, locks } = setUp();
    const held = await gate.acquire('x', { leaseMs: 1_000, renew: false });
    await runtime.advance(2_000);
    const next = await other.acquire('x');
    locks.releases.length = 0;
    expect(await held.release()).toBe('taken');
    expect(locks.releases).toEqual(['x']);
    expect(next.isHeld()).toBe(true);
    expect((await gate.inspectLock('x'))?.fence).toBe(next.fence);
  });

  it('when the store is down: the next acquire of this process works once it is back', async () => {
    const { gate, locks, runtime } = setUp();
    const held = await gate.acquire('x');
    locks.failing = true;
    await held.release();
    locks.failing = false;
    const taking = gate.acquire('x');
    await runtime.advance(2_500);
    expect((await taking).isHeld()).toBe(true);
    expect(events.some(({ type }) => type === 'release-failed')).toBe(true);
  });

  it('happens at the end of an await using block', async () => {
    const { gate } = setUp();
    {
      await using held = await gate.acquire('x');
      expect(held.name).toBe('x');
      expect(gate.load.locksHeld).toBe(1);
    }
    expect(gate.load.locksHeld).toBe(0);
    expect(await gate.inspectLock('x')).toBeUndefined();
  });

  it('1,000 times leaves no timer, no watcher and no queue', async () => {
    const { gate, runtime } = setUp();
    for (let i = 0; i < 1_000; i++) await (await gate.acquire(`x${i % 7}`)).release();
    expect(runtime.pendingTimers).toBeLessThanOrEqual(2); // One for calls, one for renewals.
    await runtime.advance(30_000);
    expect(runtime.pendingTimers).toBe(0);
    expect(gate.load.locksHeld).toBe(0);
  });

  it('and the process ends by itself, also while a lock is held', async () => {
    for (const mode of ['released', 'held']) {
      const child = startChild('lock-exit-child.mjs', [mode]);
      expect(await child.ended, mode).toBe(0);
      expect(child.lines).toEqual(['done']);
    }
  });
});

describe('asking for a lock this flow holds', () => {
  it('throws at once by default', async () => {
    const { gate } = setUp();
    await gate.lock('x', async () => {
      await rejection(gate.acquire('x'), 'LOCK_REENTERED');
      await rejection(
        gate.lock('x', async () => {}),
        'LOCK_REENTERED',
      );
    });
    expect((await gate.acquire('x', { waitMs: 0 })).isHeld()).toBe(true);
  });

  it('joins where asked to: same fence, freed by the last exit', async () => {
    const { gate, locks } = setUp();
    await gate.lock('x', async (outer) => {
      await gate.lock('x', { onReentry: 'join' }, async (inner) => {
        expect(inner.fence).toBe(outer.fence);
      });
      expect(outer.isHeld()).toBe(true);
      expect(locks.releases).toEqual([]);
    });
    expect(locks.releases).toEqual(['x']);
    expect(locks.acquires).toBe(1);
  });

  it('a joined handle that outlives the outer body keeps the lock, then frees it for others', async () => {
    const { gate, locks } = setUp();
    const joined = await gate.lock('x', () => gate.acquire('x', { onReentry: 'join' }));
    expect(joined.isHeld()).toBe(true);
    expect(locks.releases).toEqual([]);
    expect(await joined.release()).toBe('released');
    expect((await gate.acquire('x', { waitMs: 0 })).isHeld()).toBe(true);
  });

  it('waits like a stranger where asked to', async () => {
    const { gate, runtime } = setUp();
    await gate.lock('x', async () => {
      const waiting = rejection(gate.acquire('x', { onReentry: 'wait', waitMs: 100 }), 'BUSY');
      await runtime.advance(200);
      await waiting;
    });
  });

  it('two flows are two holders', async () => {
    const { gate } = setUp();
    let inside = 0;
    const flow = (): Promise<void> =>
      gate.lock('x', { onReentry: 'join' }, async () => {
        expect(++inside).toBe(1);
        await turn();
        inside--;
      });
    await Promise.all([flow(), flow(), flow()]);
  });

  it('a promise left behind by the body does not join what has ended', async () => {
    const { gate } = setUp();
    const ended = door();
    let left: Promise<bigint> = Promise.resolve(0n);
    const first = await gate.lock('x', async ({ fence }) => {
      left = ended.opened.then(() =>
        gate.lock('x', { onReentry: 'join' }, async (lock) => lock.fence),
      );
      return fence;
    });
    ended.open();
    expect((await left) > first).toBe(true);
  });
});

describe('options', () => {
  it('are refused before the store is asked', async () => {
    const { gate, locks } = setUp();
    for (const options of [
      { leaseMs: 0 },
      { leaseMs: -1 },
      { leaseMs: 250.5 },
      { leaseMs: Number.NaN },
      { leaseMs: 2 ** 53 },
      { leaseMs: '1000' },
      { waitMs: -1 },
      { waitMs: 0.4 },
      { maxHoldMs: 1 },
      { renew: 'no' },
      { onReentry: 'maybe' },
      { ttl: 1_000 },
    ]) {
      await rejection(gate.acquire('x', options as never), 'OPTION_INVALID');
    }
    for (const name of ['', ' ', 'a\nb', 'a\u0000', 'x'.repeat(256), 5, undefined]) {
      await rejection(gate.acquire(name as string), 'OPTION_INVALID');
    }
    await rejection(gate.lock('x', 'body' as never), 'OPTION_INVALID');
    expect(locks.acquires).toBe(0);
    const without = createGate({ records: memory() });
    await rejection(without.acquire('x'), 'OPTION_INVALID');
  });
});

describe('in real time', () => {
  it('renewal keeps a 300 ms lease over two seconds', async () => {
    const locks = memoryLocks();
    const gate = createGate({ records: memory(), locks });
    const held = await gate.acquire('x', { leaseMs: 300 });
    const endMs = performance.now() + 2_000;
    await until('two seconds have passed', () => {
      held.assertHeld();
      return performance.now() > endMs;
    });
    expect(await held.release()).toBe('released');
  });
});
