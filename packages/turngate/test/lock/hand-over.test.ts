/** Handing a lock on inside a process: cheaper, in order, with growing fences, and bounded. */
import { describe, expect, it } from 'vitest';
import { turn } from '../support/clock.ts';
import { setUp } from './support.ts';

describe('handing over inside a process', () => {
  it('serves first come first served, costs 1 command for 9 turns, and fences grow', async () => {
    const { gate, locks } = setUp();
    const order: number[] = [];
    const fences: bigint[] = [];
    let inside = 0;
    await Promise.all(
      Array.from({ length: 90 }, (_, i) =>
        gate.lock('x', async ({ fence }) => {
          expect(++inside).toBe(1);
          await turn();
          inside--;
          order.push(i);
          fences.push(fence);
        }),
      ),
    );
    expect(order).toEqual(Array.from({ length: 90 }, (_, i) => i));
    expect(fences.every((fence, i) => i === 0 || fence > (fences[i - 1] as bigint))).toBe(true);
    expect(locks.commands).toBeLessThanOrEqual(90 * 0.2);
    expect(locks.count('pass')).toBe(9);
  });

  it('can be switched off: every grant is then a command of the store', async () => {
    const { gate, locks } = setUp();
    const options = { handOver: false };
    await Promise.all(Array.from({ length: 20 }, () => gate.lock('x', options, () => turn())));
    expect(locks.tries).toHaveLength(20);
    expect(locks.commands).toBeLessThanOrEqual(20 * 2);
    expect(locks.tries.every(({ fences }) => fences === undefined)).toBe(true);
  });

  it('without pass() releases and asks', async () => {
    const { gate, locks } = setUp({ noPass: true });
    const fences: bigint[] = [];
    await Promise.all(
      Array.from({ length: 30 }, () =>
        gate.lock('x', async ({ fence }) => void fences.push(fence)),
      ),
    );
    expect(fences).toHaveLength(30);
    expect(new Set(fences).size).toBe(30);
    expect(locks.commands).toBe(8);
  });

  it('another process waits for at most nine turns', async () => {
    const { gate, other } = setUp();
    const turns: string[] = [];
    const one = Array.from({ length: 40 }, () =>
      gate.lock('x', async () => void turns.push('one')),
    );
    const two = Array.from({ length: 40 }, () =>
      other.lock('x', async () => void turns.push('two')),
    );
    await Promise.all([...one, ...two]);
    let longest = 0;
    let run = 0;
    turns.forEach((who, i) => {
      run = who === turns[i - 1] ? run + 1 : 1;
      if (i < 72) longest = Math.max(longest, run); // At the end one of them is alone.
    });
    expect(longest).toBe(9);
  });

  it('fair: false keeps it for longer', async () => {
    const { gate, locks } = setUp();
    const options = { fair: false };
    await Promise.all(Array.from({ length: 65 }, () => gate.lock('x', options, () => turn())));
    expect(locks.commands).toBe(2);
  });

  it('ends after 10 ms of the turn', async () => {
    const { gate, locks, runtime } = setUp();
    const work = (): Promise<void> => runtime.advance(6);
    await Promise.all([gate.lock('x', work), gate.lock('x', work), gate.lock('x', work)]);
    expect(locks.sent).toEqual(['tryAcquire', 'pass', 'release']);
  });

  it('never on a lease of which less than a third is left', async () => {
    const { gate, locks, runtime } = setUp();
    const options = { leaseMs: 300, renew: false, handOver: { ms: 60_000 } };
    const held = await gate.acquire('x', options);
    const next = gate.acquire('x', options);
    await runtime.advance(200);
    await held.release();
    expect((await next).remainingMs()).toBeGreaterThan(250);
    expect(locks.count('pass')).toBe(1);
  });

  it('never after a renewal that failed, until one has worked', async () => {
    const { gate, locks, runtime } = setUp();
    const options = { leaseMs: 3_000, handOver: { ms: 60_000 } };
    const first = await gate.acquire('x', options);
    const second = gate.acquire('x', options);
    const third = gate.acquire('x', options);
    locks.errors.set('renew', [new Error('lost')]);
    await runtime.advance(1_150);
    expect(locks.count('renew')).toBe(1);
    await first.release();
    const passed = await second;
    expect(locks.count('pass')).toBe(1);
    await passed.release();
    expect((await third).isHeld()).toBe(true);
    expect(locks.count('pass')).toBe(1);
  });

  it('each local holder has its own signal and its own maxHoldMs', async () => {
    const { gate, runtime } = setUp();
    const first = await gate.acquire('x');
    const second = gate.acquire('x', { maxHoldMs: 500 });
    const { signal } = first;
    await first.release();
    const held = await second;
    await runtime.advance(600);
    expect(held.signal.aborted).toBe(true);
    expect(held.signal.reason.message).toContain('max-hold');
    expect(signal.aborted).toBe(false);
  });

  it('a waiter with another lease gets a grant of its own', async () => {
    const { gate, runtime } = setUp();
    const first = await gate.acquire('x', { leaseMs: 1_000 });
    const second = gate.acquire('x', { leaseMs: 60_000 });
    await first.release();
    const held = await second;
    await runtime.advance(0);
    expect(held.remainingMs()).toBeGreaterThan(50_000);
  });
});
