/** The laws of a lock store as tests of any runner. */
import assert from 'node:assert/strict';
import type { LockAttempt, LockStore } from '../contract/lock-store.ts';
import { systemRuntime } from '../runtime/runtime.ts';
import { type Law, type Runner, registerLaws } from './runner.ts';

/** A lock store whose time can be waited for. */
export interface LockStoreTarget {
  readonly name: string;
  /** Called once per law. May give the same store each time: every law uses names of its own. */
  open(): Promise<LockStore>;
  /** Lets time pass on the store's clock. */
  passTime(ms: number): Promise<void>;
}

/**
 * Registers the laws of {@link LockStore} for one store.
 *
 * @param runner `{ describe, it }` of your test runner
 */
export function lockStoreSuite(runner: Runner, target: LockStoreTarget): void {
  registerLaws(runner, `lock laws on ${target.name}`, laws, target);
}

const longMs = 60_000;
const shortMs = 100;
const pastMs = 150;

function attemptAt(name: string, leaseMs: number = longMs): LockAttempt {
  return { name, owner: systemRuntime.randomId(), leaseMs };
}

function freshName(): string {
  return `law ${systemRuntime.randomId()}`;
}

async function take(store: LockStore, attempt: LockAttempt): Promise<bigint> {
  const grant = await store.tryAcquire(attempt);
  if (grant.kind !== 'granted') throw new assert.AssertionError({ message: 'not granted' });
  return grant.fence;
}

const laws: readonly Law<LockStoreTarget>[] = [
  {
    name: 'of 50 attempts at one name at once exactly one is granted',
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const calls = Array.from({ length: 50 }, () => store.tryAcquire(attemptAt(name)));
      const granted = (await Promise.all(calls)).filter(({ kind }) => kind === 'granted');
      assert.equal(granted.length, 1);
    },
  },
  {
    name: 'a held lock answers what is left of the lease, never more',
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      await take(store, attemptAt(name, 5_000));
      const grant = await store.tryAcquire(attemptAt(name));
      if (grant.kind !== 'held') throw new assert.AssertionError({ message: 'two holders' });
      assert.ok(grant.remainingMs > 0 && grant.remainingMs <= 5_000, String(grant.remainingMs));
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
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      const fences: bigint[] = [];
      for (let i = 0; i < 5; i++) {
        const attempt = attemptAt(name);
        fences.push(await take(store, attempt));
        assert.equal(await store.release(attempt), 'ours');
      }
      const expiring = attemptAt(name, shortMs);
      fences.push(await take(store, expiring));
      await target.passTime(pastMs);
      fences.push(await take(store, attemptAt(name)));
      for (let i = 1; i < fences.length; i++) {
        assert.ok((fences[i] as bigint) > (fences[i - 1] as bigint), fences.join());
      }
    },
  },
  {
    name: 'a lease that has ended lets the next one in, and only one',
    async prove(target) {
      const store = await target.open();
      const name = freshName();
      await take(store, attemptAt(name, shortMs));
      await target.passTime(pastMs);
      const calls = Array.from({ length: 20 }, () => store.tryAcquire(attemptAt(name)));
      const granted = (await Promise.all(calls)).filter(({ kind }) => kind === 'granted');
      assert.equal(granted.length, 1);
    },
  },
  {
    name: 'a renewal batch answers every attempt in order: ours, expired, taken',
    async prove(target) {
      const store = await target.open();
      const [mine, also, ended, lost, freed, unknown] = [
        attemptAt(freshName()),
        attemptAt(freshName()),
        attemptAt(freshName(), shortMs),
        attemptAt(freshName(), shortMs),
        attemptAt(freshName()),
        attemptAt(freshName()),
      ] as const;
      for (const attempt of [mine, also, ended, lost, freed]) await take(store, attempt);
      await store.release(freed);
      await target.passTime(pastMs);
      await take(store, attemptAt(lost.name));
      const answers = await store.renew([ended, mine, lost, unknown, also, freed]);
      assert.deepEqual(answers, ['expired', 'ours', 'taken', 'expired', 'ours', 'expired']);
      assert.deepEqual(await store.renew([]), []);
    },
  },
  {
    name: 'a renewal pushes the lease out from now and keeps the fence',
    async prove(target) {
      const store = await target.open();
      const attempt = attemptAt(freshName(), 1_000);
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
      const attempt = attemptAt(freshName(), shortMs);
      await take(store, attempt);
      await target.passTime(pastMs);
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
      const next = attemptAt(attempt.name, shortMs);
      await take(store, next);
      await target.passTime(pastMs);
      assert.equal(await store.release(next), 'expired');
      assert.equal(await store.release(attemptAt(freshName())), 'expired');
    },
  },
  {
    name: 'a stranger and a former holder are told taken, and change nothing',
    async prove(target) {
      const store = await target.open();
      const former = attemptAt(freshName(), shortMs);
      await take(store, former);
      await target.passTime(pastMs);
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
      const former = attemptAt(freshName(), shortMs);
      await take(store, former);
      await target.passTime(pastMs);
      await take(store, attemptAt(former.name, shortMs));
      await target.passTime(pastMs);
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
      const names = ['k', 'K', 'k ', 'é', 'e\u0301', '$1', '%', "'", '\\', 'a:b', 'ß', 'ss', '🙂'];
      for (const name of names) await take(store, attemptAt(`${base}${name}`));
    },
  },
  {
    name: 'whoever watches is told when the lock is released',
    async prove(target) {
      const store = await target.open();
      if (store.watch === undefined) return assert.equal(store.capabilities.wakeup, 'poll');
      const attempt = attemptAt(freshName());
      await take(store, attempt);
      let told = 0;
      const unwatch = store.watch(attempt.name, () => told++);
      await store.release(attempt);
      assert.equal(told, 1);
      unwatch();
      await take(store, attemptAt(attempt.name));
      assert.equal(told, 1);
    },
  },
];
