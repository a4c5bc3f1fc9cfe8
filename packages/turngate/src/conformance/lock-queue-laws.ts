/** Laws of stores that keep a queue, push, or pass a lock on in one step. */
import assert from 'node:assert/strict';
import type { LockAttempt, LockStore } from '../contract/lock-store.ts';
import {
  attemptAt,
  either,
  endLeases,
  eventually,
  freshName,
  type LockLaw,
  lacking,
  listen,
  longMs,
  noPush,
  noQueue,
  queuedAt,
  refused,
  shortMs,
  take,
} from './lock-target.ts';

async function heldWithQueue(
  store: LockStore,
  waiting: number,
  parts: Partial<LockAttempt> = {},
): Promise<{ holder: LockAttempt; queue: readonly LockAttempt[] }> {
  const holder = attemptAt(freshName());
  await take(store, holder);
  const queue = Array.from({ length: waiting }, () => queuedAt(holder.name, parts));
  for (const attempt of queue) await refused(store, attempt);
  return { holder, queue };
}

/** Laws about those who wait. */
export const lockQueueLaws: readonly LockLaw[] = [
  {
    name: 'those who wait are served in the order of their first try, strangers after them',
    skipped: noQueue,
    async prove(target) {
      const store = await target.open();
      const { holder, queue } = await heldWithQueue(store, 4);
      for (const again of [...queue].reverse()) await refused(store, again); // Keeps the place.
      let before = holder;
      for (const head of queue) {
        assert.equal(await store.release(before), 'ours');
        await refused(store, attemptAt(holder.name));
        for (const later of queue.slice(queue.indexOf(head) + 1)) await refused(store, later);
        await take(store, head);
        before = head;
      }
      assert.equal(await store.release(before), 'ours');
      await take(store, attemptAt(holder.name));
    },
  },
  {
    name: 'an attempt without queueMs leaves no place behind',
    skipped: noQueue,
    async prove(target) {
      const store = await target.open();
      const { holder } = await heldWithQueue(store, 0);
      await refused(store, attemptAt(holder.name));
      await store.release(holder);
      await take(store, attemptAt(holder.name));
    },
  },
  {
    name: 'a place that is not repeated lapses, and whoever stands behind it is served',
    skipped: noQueue,
    async prove(target) {
      const store = await target.open();
      const placeMs = Math.max(300, shortMs(target));
      const { holder } = await heldWithQueue(store, 1, { queueMs: placeMs });
      const second = queuedAt(holder.name);
      await refused(store, second);
      await target.passTime(placeMs * 1.5);
      assert.equal(await store.release(holder), 'ours');
      await take(store, second);
    },
  },
  {
    name: 'release gives up a place in the queue',
    skipped: noQueue,
    async prove(target) {
      const store = await target.open();
      const { holder, queue } = await heldWithQueue(store, 3);
      const [first, second, third] = queue as [LockAttempt, LockAttempt, LockAttempt];
      assert.equal(await store.release(second), 'taken');
      assert.equal(await store.release(first), 'taken');
      assert.equal(await store.release(holder), 'ours');
      await take(store, third);
    },
  },
  {
    name: 'the head of the queue gets a lease that has ended, nobody else',
    skipped: noQueue,
    async prove(target) {
      const store = await target.open();
      const holder = attemptAt(freshName(), shortMs(target));
      await take(store, holder);
      const head = queuedAt(holder.name);
      await refused(store, head);
      await endLeases(target, store, holder);
      await refused(store, attemptAt(holder.name));
      await take(store, head);
    },
  },
  {
    name: 'whoever waits and watches is told when the lock is released, nobody else',
    skipped: noPush,
    async prove(target) {
      const store = await target.open();
      const queueMs = store.capabilities.fairness === 'fifo' ? { queueMs: longMs } : {};
      const holder = attemptAt(freshName());
      await take(store, holder);
      const waiter = attemptAt(holder.name, longMs, queueMs);
      const elsewhere = attemptAt(freshName());
      const pushes = listen(store, waiter);
      const others = listen(store, elsewhere);
      await refused(store, waiter);
      assert.equal(pushes.count(), 0);
      await store.release(holder);
      await eventually('a push to the waiter', () => pushes.count() > 0);
      assert.equal(others.count(), 0);
      const fence = await take(store, waiter);
      for (const granted of pushes.granted) assert.equal(granted.fence, fence);
      pushes.end();
      others.end();
      const before = pushes.count();
      await store.release(waiter);
      const next = attemptAt(holder.name);
      await take(store, next);
      await store.release(next);
      assert.equal(pushes.count(), before);
    },
  },
  {
    name: 'a release tells the head of the queue alone',
    skipped: either(noPush, noQueue),
    async prove(target) {
      const store = await target.open();
      const holder = attemptAt(freshName());
      await take(store, holder);
      const queue = Array.from({ length: 3 }, () => queuedAt(holder.name));
      const pushes = queue.map((attempt) => listen(store, attempt));
      for (const attempt of queue) await refused(store, attempt);
      await store.release(holder);
      await eventually('a push to the head', () => (pushes[0]?.count() ?? 0) > 0);
      await take(store, queue[0] as LockAttempt);
      assert.deepEqual(
        pushes.slice(1).map(({ count }) => count()),
        [0, 0],
      );
      for (const { end } of pushes) end();
    },
  },
  {
    name: 'a pushed grant is a grant: it can be renewed, released and inspected',
    skipped: either(noPush, noQueue),
    async prove(target) {
      const store = await target.open();
      const holder = attemptAt(freshName());
      const before = await take(store, holder);
      const waiter = queuedAt(holder.name);
      const pushes = listen(store, waiter);
      await refused(store, waiter);
      await store.release(holder);
      await eventually('a push to the waiter', () => pushes.count() > 0);
      const [granted] = pushes.granted;
      if (granted === undefined) await take(store, waiter); // A wake without a grant is as good.
      const state = await store.inspect(holder.name);
      assert.equal(state?.owner, waiter.owner);
      if (granted !== undefined) assert.equal(state?.fence, granted.fence);
      if (store.capabilities.fencing !== 'none') assert.ok((state?.fence ?? 0n) > before);
      assert.deepEqual(await store.renew([waiter]), ['ours']);
      assert.equal(await store.release(waiter), 'ours');
      pushes.end();
    },
  },
  {
    name: 'passing on frees the lock and serves the queue before the newcomer',
    skipped: either(noQueue, lacking('pass')),
    async prove(target) {
      const store = await target.open();
      const { holder, queue } = await heldWithQueue(store, 1);
      const next = queuedAt(holder.name);
      const passed = await store.pass?.(holder, next);
      assert.equal(passed?.answer, 'ours');
      assert.equal(passed?.grant.kind, 'held');
      const [other] = queue as [LockAttempt];
      await take(store, other);
      await store.release(other);
      await take(store, next);
    },
  },
  {
    name: 'passing on grants at once where nobody waits, with a greater fence',
    skipped: lacking('pass'),
    async prove(target) {
      const store = await target.open();
      const holder = attemptAt(freshName());
      const fence = await take(store, holder);
      const next = attemptAt(holder.name);
      const passed = await store.pass?.(holder, next);
      assert.equal(passed?.answer, 'ours');
      if (passed?.grant.kind !== 'granted') assert.fail('not granted');
      if (store.capabilities.fencing !== 'none') assert.ok(passed.grant.fence > fence);
      assert.equal(await store.release(holder), 'taken');
      assert.equal(await store.release(next), 'ours');
    },
  },
  {
    name: 'passing on what is not ours any more frees nothing and says so',
    skipped: lacking('pass'),
    async prove(target) {
      const store = await target.open();
      const former = attemptAt(freshName(), shortMs(target));
      await take(store, former);
      await endLeases(target, store, former);
      const free = await store.pass?.(former, attemptAt(freshName()));
      assert.equal(free?.answer, 'expired');
      const holder = attemptAt(former.name);
      await take(store, holder);
      const passed = await store.pass?.(former, attemptAt(former.name));
      assert.deepEqual([passed?.answer, passed?.grant.kind], ['taken', 'held']);
      assert.equal(await store.release(holder), 'ours');
    },
  },
  {
    name: 'an operator who frees a name ends its queue too',
    skipped: either(noQueue, lacking('forceRelease')),
    async prove(target) {
      const store = await target.open();
      const { holder } = await heldWithQueue(store, 2);
      assert.equal(await store.forceRelease?.(holder.name), 'released');
      await take(store, attemptAt(holder.name));
    },
  },
];
