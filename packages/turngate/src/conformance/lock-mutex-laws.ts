/** Laws of a lock store that every store keeps: one holder, growing fences, honest answers. */
import assert from 'node:assert/strict';
import {
  attemptAt,
  endLeases,
  freshName,
  grantedOf,
  type LockLaw,
  lacking,
  longMs,
  noBlocks,
  noFences,
  refused,
  shortMs,
  take,
} from './lock-target.ts';

function assertGrowing(fences: readonly bigint[]): void {
  for (let i = 1; i < fences.length; i++) {
    assert.ok((fences[i] as bigint) > (fences[i - 1] as bigint), fences.join());
  }
}

/** Laws about one name held by one. */
export const lockMutexLaws: readonly LockLaw[] = [
  {
    name: 'of 50 attempts at one name at once exactly one is granted',
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const attempts = Array.from({ length: 50 }, () => attemptAt(name));
      assert.equal(await grantedOf(store, attempts), 1);
    },
  },
  {
    name: 'a held lock answers what is left of the lease, never more',
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      await take(store, attemptAt(name, 5_000));
      const remainingMs = await refused(store, attemptAt(name));
      assert.ok(remainingMs <= 5_000, String(remainingMs));
    },
  },
  {
    name: 'repeating an attempt gives the same fence and prolongs nothing',
    async prove(target) {
      const store = await target.open();
      const attempt = attemptAt(freshName());
      const fence = await take(store, attempt);
      await target.passTime(200);
      assert.equal(await take(store, attempt), fence);
      const remainingMs = (await store.inspect(attempt.name))?.remainingMs as number;
      assert.ok(remainingMs <= longMs - 150, `prolonged to ${remainingMs}`);
    },
  },
  {
    name: 'fences of one name grow over release, expiry and re-grant to anybody',
    skipped: noFences,
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const fences: bigint[] = [];
      for (let i = 0; i < 5; i++) {
        const attempt = attemptAt(name);
        fences.push(await take(store, attempt));
        assert.equal(await store.release(attempt), 'ours');
      }
      const expiring = attemptAt(name, shortMs(target));
      fences.push(await take(store, expiring));
      await endLeases(target, store, expiring);
      fences.push(await take(store, attemptAt(name)));
      assertGrowing(fences);
    },
  },
  {
    name: 'the fences of a block belong to its grant: the next grant is above all of them',
    skipped: noBlocks,
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      let last = -1n;
      for (const fences of [1, 16, 1_001, 1]) {
        const attempt = attemptAt(name, longMs, { fences });
        const fence = await take(store, attempt);
        assert.ok(fence > last, `${fence} is not above ${last}`);
        last = fence + BigInt(fences) - 1n;
        assert.equal(await store.release(attempt), 'ours');
      }
    },
  },
  {
    name: 'a lease that has ended lets the next one in, and only one',
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const ended = attemptAt(name, shortMs(target));
      await take(store, ended);
      await endLeases(target, store, ended);
      const attempts = Array.from({ length: 20 }, () => attemptAt(name));
      assert.equal(await grantedOf(store, attempts), 1);
    },
  },
  {
    name: 'a renewal batch answers every attempt in order: ours, expired, taken',
    async prove(target) {
      const store = await target.open();
      const [mine, also, ended, lost, freed, unknown] = [
        attemptAt(freshName()),
        attemptAt(freshName()),
        attemptAt(freshName(), shortMs(target)),
        attemptAt(freshName(), shortMs(target)),
        attemptAt(freshName()),
        attemptAt(freshName()),
      ] as const;
      for (const attempt of [mine, also, ended, lost, freed]) await take(store, attempt);
      await store.release(freed);
      await endLeases(target, store, ended, lost);
      await take(store, attemptAt(lost.name));
      const answers = await store.renew([ended, mine, lost, unknown, also, freed]);
      assert.deepEqual(answers, ['expired', 'ours', 'taken', 'expired', 'ours', 'expired']);
      assert.deepEqual(await store.renew([]), []);
    },
  },
  {
    name: 'a renewal batch of 300 names answers 300 times',
    async prove(target) {
      const store = await target.open();
      const attempts = Array.from({ length: 300 }, () => attemptAt(freshName()));
      const held = attempts.filter((_, i) => i % 3 === 0);
      for (const attempt of held) await take(store, attempt);
      const answers = await store.renew(attempts);
      assert.deepEqual(
        answers,
        attempts.map((_, i) => (i % 3 === 0 ? 'ours' : 'expired')),
      );
    },
  },
  {
    name: 'of 90 names asked for in one tick each gets an answer of its own, and so when let go',
    async prove(target) {
      const store = await target.open();
      const mine = Array.from({ length: 90 }, (_, i) =>
        attemptAt(freshName(), longMs - i, i % 4 === 0 ? { fences: 3 } : {}),
      );
      const others = mine.filter((_, i) => i % 3 === 0).map(({ name }) => attemptAt(name));
      for (const other of others) await take(store, other);
      const grants = await Promise.all(mine.map((attempt) => store.tryAcquire(attempt)));
      const kinds = grants.map(({ kind }) => kind);
      assert.deepEqual(
        kinds,
        mine.map((_, i) => (i % 3 === 0 ? 'held' : 'granted')),
      );
      for (const [i, { name, owner, leaseMs }] of mine.entries()) {
        const state = await store.inspect(name);
        const holder = i % 3 === 0 ? others[i / 3]?.owner : owner;
        assert.equal(state?.owner, holder);
        assert.ok((state?.remainingMs ?? 0) <= (i % 3 === 0 ? longMs : leaseMs));
        const grant = grants[i];
        if (grant?.kind === 'granted') assert.equal(grant.fence, state?.fence);
      }
      const answers = await Promise.all(mine.map((attempt) => store.release(attempt)));
      assert.deepEqual(
        answers,
        mine.map((_, i) => (i % 3 === 0 ? 'taken' : 'ours')),
      );
      for (const other of others) assert.equal(await store.release(other), 'ours');
      const late = await Promise.all(mine.map((attempt) => store.release(attempt)));
      assert.ok(late.every((answer) => answer === 'expired'));
    },
  },
  {
    name: 'a renewal pushes the lease out from now and keeps the fence',
    async prove(target) {
      const store = await target.open();
      const leaseMs = Math.max(1_000, shortMs(target));
      const attempt = attemptAt(freshName(), leaseMs);
      const fence = await take(store, attempt);
      await target.passTime(200);
      assert.deepEqual(await store.renew([{ ...attempt, leaseMs: longMs }]), ['ours']);
      const state = await store.inspect(attempt.name);
      assert.equal(state?.fence, fence);
      assert.ok((state?.remainingMs ?? 0) > 50_000);
    },
  },
  {
    name: 'a renewal never brings back a lease that has ended',
    async prove(target) {
      const store = await target.open();
      const attempt = attemptAt(freshName(), shortMs(target));
      await take(store, attempt);
      await endLeases(target, store, attempt);
      assert.deepEqual(await store.renew([attempt]), ['expired']);
      assert.equal(await store.inspect(attempt.name), undefined);
    },
  },
  {
    name: 'release answers ours once, expired when it was over, and frees at once',
    async prove(target) {
      const store = await target.open();
      const attempt = attemptAt(freshName());
      await take(store, attempt);
      assert.equal(await store.release(attempt), 'ours');
      assert.equal(await store.release(attempt), 'expired');
      const next = attemptAt(attempt.name, shortMs(target));
      await take(store, next);
      await endLeases(target, store, next);
      assert.equal(await store.release(next), 'expired');
      assert.equal(await store.release(attemptAt(freshName())), 'expired');
    },
  },
  {
    name: 'a stranger and a former holder are told taken, and change nothing',
    async prove(target) {
      const store = await target.open();
      const former = attemptAt(freshName(), shortMs(target));
      await take(store, former);
      await endLeases(target, store, former);
      const holder = attemptAt(former.name);
      const fence = await take(store, holder);
      assert.equal(await store.release(former), 'taken');
      assert.deepEqual(await store.renew([former]), ['taken']);
      assert.equal(await store.release(attemptAt(former.name)), 'taken');
      const state = await store.inspect(former.name);
      assert.deepEqual([state?.owner, state?.fence], [holder.owner, fence]);
    },
  },
  {
    name: 'renewal and release agree that nobody holds it once the next holder’s lease ended too',
    async prove(target) {
      const store = await target.open();
      const former = attemptAt(freshName(), shortMs(target));
      await take(store, former);
      await endLeases(target, store, former);
      const next = attemptAt(former.name, shortMs(target));
      await take(store, next);
      await endLeases(target, store, next);
      assert.deepEqual(await store.renew([former]), ['expired']);
      assert.equal(await store.release(former), 'expired');
    },
  },
  {
    name: 'inspect shows the live holder and nobody else',
    async prove(target) {
      const store = await target.open();
      const attempt = attemptAt(freshName());
      assert.equal(await store.inspect(attempt.name), undefined);
      const fence = await take(store, attempt);
      const state = await store.inspect(attempt.name);
      assert.deepEqual(
        { name: state?.name, owner: state?.owner, fence: state?.fence },
        { name: attempt.name, owner: attempt.owner, fence },
      );
      assert.ok((state?.remainingMs ?? 0) > 0 && (state?.remainingMs ?? 0) <= longMs);
      await store.release(attempt);
      assert.equal(await store.inspect(attempt.name), undefined);
    },
  },
  {
    name: 'names that differ in any character are different locks',
    async prove(target) {
      const store = await target.open();
      const base = freshName();
      const names = ['k', 'K', 'k ', 'é', 'e\u0301', '$1', '%', "'", '"', '\\', 'a:b', 'a/b'];
      names.push('{k}', '{', '}', '*', '?', '..', 'ß', 'ss', '🙂');
      for (const name of names) await take(store, attemptAt(`${base}${name}`));
    },
  },
  {
    name: 'an operator frees a held name: the holder is told, and the next fence is greater',
    skipped: lacking('forceRelease'),
    async prove(target) {
      const store = await target.open();
      const holder = attemptAt(freshName(), longMs, { fences: 8 });
      const fence = await take(store, holder);
      assert.equal(await store.forceRelease?.(holder.name), 'released');
      assert.equal(await store.inspect(holder.name), undefined);
      assert.deepEqual(await store.renew([holder]), ['expired']);
      const next = attemptAt(holder.name);
      const nextFence = await take(store, next);
      const blocks = store.capabilities.fenceBlocks ? 7n : 0n;
      if (store.capabilities.fencing !== 'none') assert.ok(nextFence > fence + blocks);
      assert.equal(await store.release(holder), 'taken');
      assert.equal(await store.release(next), 'ours');
      assert.equal(await store.forceRelease?.(holder.name), 'free');
    },
  },
];
