/** Laws of stores where several hold one name, each a share of it. */
import assert from 'node:assert/strict';
import {
  either,
  endLeases,
  eventually,
  freshName,
  grantedOf,
  type LockLaw,
  lacking,
  listen,
  longMs,
  noFences,
  noPush,
  noQueue,
  noShares,
  refused,
  sharedAt,
  shortMs,
  take,
} from './lock-target.ts';

const readersMax = 1_000_000;
const read = { take: 1, limit: readersMax };
const write = { take: readersMax, limit: readersMax, urgent: true };
const queued = { queueMs: longMs };

/** Laws about shares. */
export const lockShareLaws: readonly LockLaw[] = [
  {
    name: 'never more permits are out than the limit, however many ask at once',
    skipped: noShares,
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const attempts = Array.from({ length: 30 }, () => sharedAt(name, { take: 1, limit: 7 }));
      assert.equal(await grantedOf(store, attempts), 7);
      assert.equal((await store.inspect(name))?.holders, 7);
    },
  },
  {
    name: 'several permits are taken at once or not at all',
    skipped: noShares,
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const [three, two, one] = [3, 2, 1].map((n) => sharedAt(name, { take: n, limit: 4 }));
      assert.ok(three && two && one);
      await take(store, three);
      await refused(store, two);
      await take(store, one);
      await refused(store, sharedAt(name, { take: 1, limit: 4 }));
      assert.equal(await store.release(three), 'ours');
      await take(store, two);
    },
  },
  {
    name: 'repeating an attempt at a share takes it once',
    skipped: noShares,
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const first = sharedAt(name, { take: 1, limit: 2 });
      const fence = await take(store, first);
      assert.equal(await take(store, first), fence);
      await take(store, sharedAt(name, { take: 1, limit: 2 }));
      await refused(store, sharedAt(name, { take: 1, limit: 2 }));
    },
  },
  {
    name: 'fences of shares grow with every grant too',
    skipped: either(noShares, noFences),
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      let last = -1n;
      for (let i = 0; i < 5; i++) {
        const fence = await take(store, sharedAt(name, { take: 1, limit: 9 }));
        assert.ok(fence > last);
        last = fence;
      }
    },
  },
  {
    name: 'a permit whose lease has ended is free again; releasing it says expired and changes nothing',
    skipped: noShares,
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const share = { take: 1, limit: 2 };
      const ended = sharedAt(name, share, { leaseMs: shortMs(target) });
      await take(store, ended);
      await take(store, sharedAt(name, share));
      await endLeases(target, store, ended);
      await take(store, sharedAt(name, share));
      assert.equal(await store.release(ended), 'expired');
      assert.deepEqual(await store.renew([ended]), ['expired']);
      await refused(store, sharedAt(name, share));
      assert.equal((await store.inspect(name))?.holders, 2);
    },
  },
  {
    name: 'a renewal keeps one share and leaves the others to end',
    skipped: noShares,
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const share = { take: 1, limit: 2 };
      const leaseMs = shortMs(target);
      const [kept, ended] = [sharedAt(name, share), sharedAt(name, share, { leaseMs })];
      await take(store, kept);
      await take(store, ended);
      assert.deepEqual(await store.renew([kept, ended]), ['ours', 'ours']);
      await endLeases(target, store, ended);
      assert.deepEqual(await store.renew([kept, ended]), ['ours', 'expired']);
      assert.equal((await store.inspect(name))?.holders, 1);
    },
  },
  {
    name: 'readers share, a writer excludes everybody',
    skipped: noShares,
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const readers = Array.from({ length: 20 }, () => sharedAt(name, read));
      assert.equal(await grantedOf(store, readers), 20);
      await refused(store, sharedAt(name, write));
      for (const reader of readers) assert.equal(await store.release(reader), 'ours');
      const writer = sharedAt(name, write);
      await take(store, writer);
      await refused(store, sharedAt(name, read));
      await refused(store, sharedAt(name, write));
      assert.equal(await store.release(writer), 'ours');
      await take(store, sharedAt(name, read));
    },
  },
  {
    name: 'a writer that waits goes before readers that come later, also before those in the queue',
    skipped: either(noShares, noQueue),
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const first = sharedAt(name, write);
      await take(store, first);
      const [reader, writer] = [sharedAt(name, read, queued), sharedAt(name, write, queued)];
      await refused(store, reader);
      await refused(store, writer);
      await refused(store, sharedAt(name, read));
      assert.equal(await store.release(first), 'ours');
      await refused(store, reader);
      await take(store, writer);
      assert.equal(await store.release(writer), 'ours');
      await take(store, reader);
    },
  },
  {
    name: 'new readers do not overtake a writer that waits for the readers before it',
    skipped: either(noShares, noQueue),
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const reader = sharedAt(name, read);
      await take(store, reader);
      const writer = sharedAt(name, write, queued);
      await refused(store, writer);
      await refused(store, sharedAt(name, read));
      assert.equal(await store.release(reader), 'ours');
      await take(store, writer);
    },
  },
  {
    name: 'the end of a writer lets all waiting readers in',
    skipped: either(noShares, noQueue, noPush),
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const writer = sharedAt(name, write);
      await take(store, writer);
      const readers = Array.from({ length: 5 }, () => sharedAt(name, read, queued));
      const pushes = readers.map((reader) => listen(store, reader));
      for (const reader of readers) await refused(store, reader);
      assert.equal(await store.release(writer), 'ours');
      for (const { count } of pushes) await eventually('a push to a reader', () => count() > 0);
      for (const reader of readers) await take(store, reader);
      for (const { end } of pushes) end();
    },
  },
  {
    name: 'whoever wants many permits is not overtaken by those who want few',
    skipped: either(noShares, noQueue),
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const [one, other] = [1, 1].map((n) => sharedAt(name, { take: n, limit: 3 }));
      assert.ok(one && other);
      await take(store, one);
      await take(store, other);
      const many = sharedAt(name, { take: 3, limit: 3 }, queued);
      await refused(store, many);
      await refused(store, sharedAt(name, { take: 1, limit: 3 }, queued));
      await store.release(one);
      await refused(store, sharedAt(name, { take: 1, limit: 3 }));
      await store.release(other);
      await take(store, many);
    },
  },
  {
    name: 'an operator frees all shares of a name',
    skipped: either(noShares, lacking('forceRelease')),
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const holders = Array.from({ length: 3 }, () => sharedAt(name, { take: 1, limit: 3 }));
      for (const holder of holders) await take(store, holder);
      assert.equal(await store.forceRelease?.(name), 'released');
      assert.deepEqual(await store.renew(holders), ['expired', 'expired', 'expired']);
      await take(store, sharedAt(name, { take: 3, limit: 3 }));
    },
  },
];
