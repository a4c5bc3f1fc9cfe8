import { expect, it } from 'vitest';
import type { LockAttempt, LockGranted } from '../../src/contract/lock-store.ts';
import { type ClosableLockStore, redisLocks } from '../../src/stores/redis/index.ts';
import { pause } from '../support/clock.ts';
import { describeWith, serverUrl } from '../support/servers.ts';
import { attemptAt, clientKinds, endAfter, freshPrefix, ioredis } from './support.ts';

/** What an attempt hears, as a promise of the first message. */
function heard(store: ClosableLockStore, attempt: LockAttempt): Promise<LockGranted | undefined> {
  return new Promise((resolve) => {
    const unwatch = store.watch?.(attempt, (granted) => {
      unwatch?.();
      resolve(granted);
    });
  });
}

for (const [kind, connect] of Object.entries(clientKinds)) {
  describeWith('redis', `the queue in Redis, ${kind}`, () => {
    const prefix = freshPrefix();
    const open = async (options = {}): Promise<ClosableLockStore> => {
      const store = redisLocks(await connect(serverUrl('redis')), { prefix, ...options });
      endAfter(() => store.close());
      return store;
    };

    it('gives a released lock to the first in the queue, with a greater fence, and tells it', async () => {
      const [here, there] = [await open(), await open()];
      const holder = attemptAt('handed');
      const first = attemptAt('handed', { leaseMs: 30_000 });
      const second = attemptAt('handed');
      const held = (await here.tryAcquire(holder)) as LockGranted;
      expect(await there.tryAcquire(first)).toMatchObject({ kind: 'held' });
      expect(await there.tryAcquire(second)).toMatchObject({ kind: 'held' });
      expect((await here.inspect('handed'))?.waiters).toBe(2);
      const [toFirst, toSecond] = [heard(there, first), heard(there, second)];
      expect(await here.release(holder)).toBe('ours');
      const granted = (await toFirst) as LockGranted;
      expect(granted.fence).toBeGreaterThan(held.fence);
      const state = await here.inspect('handed');
      expect(state).toMatchObject({ owner: first.owner, fence: granted.fence, waiters: 1 });
      expect(state?.remainingMs).toBeLessThanOrEqual(30_000);
      // The same answer as the message, for one that was lost.
      expect(await there.tryAcquire(first)).toEqual(granted);
      await there.release(first);
      expect(((await toSecond) as LockGranted).fence).toBeGreaterThan(granted.fence);
      await there.release(second);
    });

    it('gives the lock in the order of arrival, repeated tries keep their place', async () => {
      const store = await open();
      const holder = attemptAt('order');
      await store.tryAcquire(holder);
      const waiters = Array.from({ length: 5 }, () => attemptAt('order'));
      for (const waiter of waiters) await store.tryAcquire(waiter);
      for (const waiter of [...waiters].reverse()) await store.tryAcquire(waiter);
      const order: string[] = [];
      let current = holder;
      for (let i = 0; i < 5; i++) {
        await store.release(current);
        const state = await store.inspect('order');
        current = waiters.find(({ owner }) => owner === state?.owner) as LockAttempt;
        order.push(current.owner);
      }
      expect(order).toEqual(waiters.map(({ owner }) => owner));
      await store.release(current);
    });

    /** Ends the subscription of a store and waits until the server knows. */
    const deaf = async (store: ClosableLockStore): Promise<void> => {
      const admin = ioredis(serverUrl('redis'));
      const listening = async () => (await admin.pubsub('CHANNELS', `${prefix}*`)).length;
      const before = await listening();
      store.close();
      while ((await listening()) >= before) await pause(2);
    };

    it('passes over a process that has gone, at once', async () => {
      const [store, gone] = [await open(), await open()];
      const holder = attemptAt('gone');
      await store.tryAcquire(holder);
      await gone.tryAcquire(attemptAt('gone'));
      await deaf(gone);
      const alive = attemptAt('gone');
      await store.tryAcquire(alive);
      const told = heard(store, alive);
      await store.release(holder);
      expect((await told)?.kind).toBe('granted');
      await store.release(alive);
    });

    it('is free after the release when its only waiter has gone', async () => {
      const [store, gone] = [await open(), await open()];
      const holder = attemptAt('left alone');
      await store.tryAcquire(holder);
      await gone.tryAcquire(attemptAt('left alone'));
      await deaf(gone);
      await store.release(holder);
      expect(await store.inspect('left alone')).toBeUndefined();
      expect((await store.tryAcquire(attemptAt('left alone'))).kind).toBe('granted');
    });

    it('skips a head whose place has lapsed and forgets it', async () => {
      const store = await open({ wakeup: 'poll' });
      const holder = attemptAt('lapsed');
      await store.tryAcquire(holder);
      const dead = attemptAt('lapsed', { queueMs: 50 });
      await store.tryAcquire(dead);
      const alive = attemptAt('lapsed');
      await store.tryAcquire(alive);
      await pause(80);
      await store.release(holder);
      const late = attemptAt('lapsed', { queueMs: 5_000 });
      expect((await store.tryAcquire(late)).kind).toBe('held');
      expect((await store.tryAcquire(alive)).kind).toBe('granted');
      expect((await store.inspect('lapsed'))?.waiters).toBe(1);
      await store.release(alive);
      expect((await store.tryAcquire(late)).kind).toBe('granted');
      await store.release(late);
    });

    it('gives up a place by release: no late grant', async () => {
      const store = await open();
      const [holder, leaver] = [attemptAt('left'), attemptAt('left')];
      await store.tryAcquire(holder);
      await store.tryAcquire(leaver);
      expect(await store.release(leaver)).toBe('taken');
      await store.release(holder);
      expect(await store.inspect('left')).toBeUndefined();
    });

    it('pass lets the queue go first and takes a place at its end', async () => {
      const [here, there] = [await open(), await open()];
      const [mine, foreign, again] = [attemptAt('turn'), attemptAt('turn'), attemptAt('turn')];
      await here.tryAcquire(mine);
      await there.tryAcquire(foreign);
      const told = heard(there, foreign);
      const passed = await here.pass!(mine, again);
      expect(passed).toMatchObject({ answer: 'ours', grant: { kind: 'held' } });
      await told;
      const back = heard(here, again);
      await there.release(foreign);
      expect((await back)?.kind).toBe('granted');
      await here.release(again);
    });

    it('pass answers with the next grant when nobody waits, reserving its fences', async () => {
      const store = await open();
      const fences: bigint[] = [];
      let current = attemptAt('alone', { fences: 8 });
      const first = (await store.tryAcquire(current)) as LockGranted;
      fences.push(first.fence);
      for (let i = 0; i < 3; i++) {
        const next = attemptAt('alone', { fences: 1_000_000 });
        const passed = await store.pass!(current, next);
        expect(passed.answer).toBe('ours');
        fences.push((passed.grant as LockGranted).fence);
        current = next;
      }
      await store.release(current);
      expect((fences[1] as bigint) - (fences[0] as bigint)).toBeGreaterThanOrEqual(8n);
      expect((fences[3] as bigint) - (fences[2] as bigint)).toBeGreaterThanOrEqual(1_000_000n);
      const stale = await store.pass!(attemptAt('alone'), attemptAt('alone'));
      expect(stale).toMatchObject({ answer: 'expired', grant: { kind: 'granted' } });
    });

    it('forceRelease takes it from the holder and the waiters, and the next fence is greater', async () => {
      const store = await open();
      const [holder, waiter] = [attemptAt('forced', { fences: 500_000 }), attemptAt('forced')];
      const before = (await store.tryAcquire(holder)) as LockGranted;
      await store.tryAcquire(waiter);
      const told = heard(store, waiter);
      expect(await store.forceRelease!('forced')).toBe('released');
      expect(await told).toBeUndefined();
      expect(await store.inspect('forced')).toBeUndefined();
      expect(await store.renew([holder])).toEqual(['expired']);
      const after = (await store.tryAcquire(waiter)) as LockGranted;
      expect(after.fence - before.fence).toBeGreaterThan(500_000n);
      expect(await store.forceRelease!('forced')).toBe('released');
      expect(await store.forceRelease!('forced')).toBe('free');
    });

    it('leaves no key behind but the fence counters, after 1,000 waiters that gave up', async () => {
      const own = freshPrefix();
      const store = redisLocks(await connect(serverUrl('redis')), { prefix: own });
      endAfter(() => store.close());
      const holder = attemptAt('crowd');
      await store.tryAcquire(holder);
      const waiters = Array.from({ length: 1_000 }, () => attemptAt('crowd'));
      for (let i = 0; i < 2; i++) {
        await Promise.all(waiters.map((waiter) => store.tryAcquire(waiter)));
      }
      expect((await store.inspect('crowd'))?.waiters).toBe(1_000);
      const admin = ioredis(serverUrl('redis'));
      const [queue] = await admin.keys(`${own}*:queue:crowd`);
      expect(await admin.llen(queue as string)).toBe(1_000);
      await Promise.all(waiters.map((waiter) => store.release(waiter)));
      await store.release(holder);
      const keys = await admin.keys(`${own}*`);
      expect(keys.filter((key) => !key.endsWith(':fence'))).toEqual([]);
    });
  });
}
