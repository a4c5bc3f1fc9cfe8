/** Waiting for a lock: woken by pushes, bounded in time and traffic, gone without a trace. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TurngateError } from '../../src/index.ts';
import { startChild } from '../support/child.ts';
import { door, turn } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { seeded, settled, setUp } from './support.ts';

const unhandled: unknown[] = [];
const note = (reason: unknown): void => void unhandled.push(reason);
beforeAll(() => void process.on('unhandledRejection', note));
afterAll(() => {
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});

describe('a waiter', () => {
  it('is served by the push of the release, without a command of its own', async () => {
    const { gate, other, locks } = setUp();
    const held = await gate.acquire('x');
    const waiting = other.acquire('x', { waitMs: 60_000 });
    await turn();
    locks.reset();
    await held.release();
    await turn();
    expect((await waiting).fence > held.fence).toBe(true);
    expect(locks.sent).toEqual(['release']);
  });

  it('that is idle costs at most one command a second, however many wait beside it', async () => {
    const { gate, other, locks, runtime } = setUp();
    await gate.acquire('x', { leaseMs: 600 });
    const waiting = Array.from({ length: 50 }, () => other.acquire('x', { waitMs: 60_000 }));
    for (const one of waiting) one.catch(() => {});
    await turn();
    locks.reset();
    await runtime.advance(30_000);
    expect(locks.count('tryAcquire')).toBeLessThanOrEqual(31);
    expect(locks.count('tryAcquire')).toBeGreaterThan(15);
  });

  it('finds a lost push by itself within two seconds, and keeps its place until then', async () => {
    const { gate, other, locks, runtime } = setUp();
    const held = await gate.acquire('x');
    const first = other.acquire('x', { waitMs: 60_000 });
    await turn();
    locks.pushesLost = true;
    await held.release();
    const stranger = rejection(gate.acquire('x', { waitMs: 0 }), 'BUSY');
    await stranger;
    await runtime.advance(2_000);
    expect((await first).isHeld()).toBe(true);
  });

  it('keeps its place for ten times the time a place lasts (redisson #3004)', async () => {
    const { gate, other, third, runtime } = setUp();
    const held = await gate.acquire('x');
    const early = other.acquire('x', { waitMs: 100_000 });
    await turn();
    await runtime.advance(50_000);
    const late = third.acquire('x', { waitMs: 100_000 });
    const lateSettled = settled(late);
    await turn();
    await held.release();
    const served = await early;
    expect(lateSettled()).toBe(false);
    await served.release();
    await turn();
    expect((await late).isHeld()).toBe(true);
  });

  it('starts with a full lease, also after waiting for three leases (node-redlock #169)', async () => {
    const cases = [[30_000, 777], ...[0, 200, 400, 600, 800, 1_000].map((ms) => [1_200, ms])];
    for (const [leaseMs, moreMs] of cases as [number, number][]) {
      const { gate, other, runtime, locks } = setUp();
      const held = await gate.acquire('x', { leaseMs });
      const waiting = other.acquire('x', { leaseMs, waitMs: 1_000_000 });
      await runtime.advance(leaseMs * 3 + moreMs);
      await held.release();
      await turn();
      const got = await waiting;
      // A short one is topped up at once: the store may have granted it at the waiter's last try.
      const atOnce = leaseMs > 15_000 ? 0.9 : 0.65;
      expect(got.remainingMs()).toBeGreaterThanOrEqual(leaseMs * atOnce);
      await runtime.advance(leaseMs / 20);
      expect(got.remainingMs()).toBeGreaterThanOrEqual(leaseMs * 0.85);
      await runtime.advance(leaseMs * 2);
      expect(got.isHeld()).toBe(true);
      expect((await locks.inner.inspect('x'))?.fence).toBe(got.fence);
    }
  });

  it('a grant without a fence has none to show', async () => {
    const { gate, locks } = setUp({ noFence: true });
    const held = await gate.acquire('x');
    expect(() => held.fence).toThrow('has no fences');
    expect(await held.release()).toBe('released');
    expect(locks.commands).toBe(2);
  });

  it('never believes in more lease than the store gave, also when the push was lost', async () => {
    const { gate, other, runtime, locks } = setUp();
    const options = { leaseMs: 3_000, waitMs: 60_000, renew: false };
    const held = await gate.acquire('x', options);
    const waiting = other.acquire('x', options);
    await turn();
    locks.pushesLost = true;
    await held.release(); // The store grants it now; the waiter learns later.
    await runtime.advance(1_600);
    const got = await waiting;
    const real = (await locks.inner.inspect('x'))?.remainingMs as number;
    expect(got.remainingMs()).toBeLessThanOrEqual(real);
    expect(got.remainingMs()).toBeGreaterThan(0);
  });

  it('takes over soon after the holder died', async () => {
    const { other, locks, runtime } = setUp();
    await locks.inner.tryAcquire({ name: 'x', owner: 'dead', leaseMs: 10_000 });
    const waiting = other.acquire('x', { waitMs: 60_000 });
    await runtime.advance(9_990);
    expect(settled(waiting)()).toBe(false);
    await runtime.advance(100);
    expect((await waiting).isHeld()).toBe(true);
  });

  it('waits without end where asked to, and keeps the process alive meanwhile', async () => {
    const { gate, other, runtime } = setUp();
    const held = await gate.acquire('x', { maxHoldMs: 604_800_000 });
    const waiting = other.acquire('x', { waitMs: Number.POSITIVE_INFINITY, leaseMs: 86_400_000 });
    await runtime.advance(90_000);
    expect(settled(waiting)()).toBe(false);
    await held.release();
    await turn();
    expect((await waiting).isHeld()).toBe(true);
    const child = startChild('lock-wait-child.mjs', []);
    expect(await child.ended).toBe(0);
    expect(child.lines).toEqual(['waiting', 'BUSY']);
  });

  it('ends at waitMs over a store that hangs, with a late grant released', async () => {
    const { gate, locks, runtime } = setUp();
    const answer = door();
    locks.answersAfter = answer.opened;
    const waiting = rejection(gate.acquire('x', { waitMs: 700 }), 'STORE_UNAVAILABLE');
    const done = settled(waiting);
    await runtime.advance(690);
    expect(done()).toBe(false);
    await runtime.advance(20);
    expect(done()).toBe(true);
    expect(await locks.inner.inspect('x')).toBeDefined();
    answer.open();
    await turn();
    expect(await locks.inner.inspect('x')).toBeUndefined();
    expect(locks.watching).toBe(0);
  });

  it('behind a hanging command of its process ends at its own waitMs too', async () => {
    const { gate, locks, runtime } = setUp();
    const answer = door();
    locks.answersAfter = answer.opened;
    const first = rejection(gate.acquire('x', { waitMs: 60_000 }), 'STORE_UNAVAILABLE');
    const second = rejection(gate.acquire('x', { waitMs: 300 }), 'STORE_UNAVAILABLE');
    await runtime.advance(310);
    await second;
    await runtime.advance(5_000);
    await first;
    answer.open();
    await turn();
    expect(await locks.inner.inspect('x')).toBeUndefined();
  });

  it('rides out a store that asks to come back later, with at most five tries a second', async () => {
    const { gate, locks, runtime } = setUp();
    const readonly = (): Error =>
      new TurngateError('STORE_UNAVAILABLE', 'READONLY', { retryAfterMs: 100 });
    locks.errors.set('tryAcquire', Array.from({ length: 8 }, readonly));
    const waiting = gate.acquire('x', { waitMs: 10_000 });
    await runtime.advance(1_000);
    expect(locks.commands).toBeLessThanOrEqual(6);
    await runtime.advance(3_000);
    expect((await waiting).isHeld()).toBe(true);
    locks.errors.set('tryAcquire', Array.from({ length: 50 }, readonly));
    const failing = rejection(gate.acquire('y', { waitMs: 2_000 }), 'STORE_UNAVAILABLE');
    await runtime.advance(2_010);
    expect((await failing)['message']).not.toContain('held by another');
  });

  it('that gives up at the head leaves its place to the next one of its process', async () => {
    const { gate, other, third, runtime } = setUp();
    const held = await gate.acquire('x');
    const controller = new AbortController();
    const head = rejection(
      other.acquire('x', { signal: controller.signal, waitMs: 60_000 }),
      'ABORTED',
    );
    const behind = other.acquire('x', { waitMs: 60_000 });
    await turn();
    const stranger = third.acquire('x', { waitMs: 60_000 });
    const strangerServed = settled(stranger);
    await turn();
    controller.abort();
    await head;
    await held.release();
    await runtime.advance(5);
    expect((await behind).isHeld()).toBe(true);
    expect(strangerServed()).toBe(false);
    await (await behind).release();
    await runtime.advance(5);
    expect((await stranger).isHeld()).toBe(true);
  });

  it('1,000 of them aborted at random leave no entry, no late grant, no timer (seed 7)', async () => {
    const { gate, other, locks, runtime } = setUp();
    const random = seeded(7);
    const reason = new Error('enough');
    const held = await gate.acquire('x', { leaseMs: 86_400_000 });
    const controllers: AbortController[] = [];
    const waiting = Array.from({ length: 1_000 }, (_, i) => {
      const controller = new AbortController();
      controllers.push(controller);
      const side = i % 2 === 0 ? gate : other;
      const name = i % 5 === 0 ? `free ${i}` : 'x';
      return side.acquire(name, { signal: controller.signal, waitMs: 600_000 }).then(
        (lock) => lock.release(),
        (error: Error) => expect(error.cause).toBe(reason),
      );
    });
    const order = controllers.map((_, i) => i).sort(() => random() - 0.5);
    for (const i of order) {
      controllers[i]?.abort(reason);
      if (random() < 0.05) await runtime.advance(Math.trunc(random() * 300));
    }
    await Promise.all(waiting);
    await held.release();
    await turn();
    expect(await locks.inner.inspect('x')).toBeUndefined();
    await runtime.advance(100_000_000);
    expect(runtime.pendingTimers).toBe(0);
    expect(locks.watching).toBe(0);
    expect(gate.load.locksHeld + other.load.locksHeld).toBe(0);
  });

  it('on a store that polls asks 10 to 250 ms apart', async () => {
    const { gate, other, locks, runtime } = setUp({ poll: true, noQueue: true });
    const held = await gate.acquire('x');
    const waiting = other.acquire('x', { waitMs: 60_000 });
    await turn();
    locks.reset();
    await runtime.advance(10_000);
    expect(locks.count('tryAcquire')).toBeGreaterThan(40);
    expect(locks.count('tryAcquire')).toBeLessThan(100);
    await held.release();
    await runtime.advance(250);
    expect((await waiting).isHeld()).toBe(true);
  });

  it('100 first calls of a fresh process at once all work (hazelcast-nodejs-client #898)', async () => {
    const { gate } = setUp();
    const all = await Promise.all(Array.from({ length: 100 }, (_, i) => gate.acquire(`x${i}`)));
    expect(all.every((lock) => lock.isHeld())).toBe(true);
  });
});
