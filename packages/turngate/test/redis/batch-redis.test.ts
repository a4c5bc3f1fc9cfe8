import { startRedis } from '@turngate/test-servers';
import { expect, it } from 'vitest';
import type { LockAttempt, LockGrant, LockGranted } from '../../src/contract/lock-store.ts';
import { isTurngateError } from '../../src/core/errors.ts';
import { createGate } from '../../src/index.ts';
import { memory } from '../../src/stores/memory/index.ts';
import { type ClosableLockStore, redisLocks } from '../../src/stores/redis/index.ts';
import { LockKeys } from '../../src/stores/redis/keys.ts';
import { until } from '../support/clock.ts';
import { describeWith, serverUrl } from '../support/servers.ts';
import { attemptAt, clientKinds, endAfter, freshPrefix, ioredis } from './support.ts';

const many = (count: number, name: string): LockAttempt[] =>
  Array.from({ length: count }, (_, i) => attemptAt(`${name} ${i}`));

const askAll = (store: ClosableLockStore, attempts: readonly LockAttempt[]) =>
  Promise.all(attempts.map((attempt) => store.tryAcquire(attempt)));

const releaseAll = (store: ClosableLockStore, attempts: readonly LockAttempt[]) =>
  Promise.all(attempts.map((attempt) => store.release(attempt)));

for (const [kind, connect] of Object.entries(clientKinds)) {
  describeWith('redis', `many locks in one tick, ${kind}`, () => {
    const prefix = freshPrefix();
    const open = async (url = serverUrl('redis')): Promise<ClosableLockStore> => {
      const store = redisLocks(await connect(url), { prefix });
      endAfter(() => store.close());
      return store;
    };

    /** How many scripts the server ran meanwhile. */
    async function scriptsDuring(url: string, work: () => Promise<unknown>): Promise<number> {
      const admin = ioredis(url);
      const scripts = async (): Promise<number> => {
        const stats = await admin.info('commandstats');
        return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
      };
      const before = await scripts();
      await work();
      return (await scripts()) - before;
    }

    it('320 tries and 320 releases are 42 commands at most', async () => {
      const own = await startRedis();
      endAfter(() => own.stop());
      const store = await open(own.url);
      const attempts = many(320, 'few');
      await store.release(attemptAt('warm'));
      const scripts = await scriptsDuring(own.url, async () => {
        const grants = await askAll(store, attempts);
        expect(grants.every((grant) => grant.kind === 'granted')).toBe(true);
        expect(new Set(await releaseAll(store, attempts))).toEqual(new Set(['ours']));
      });
      expect(scripts).toBeLessThanOrEqual(42);
      expect(await ioredis(own.url).keys('*lock:*')).toEqual([]);
    });

    it('5,000 names of one tick are all taken and all let go', async () => {
      const store = await open();
      const attempts = many(5_000, 'flood');
      const grants = await askAll(store, attempts);
      expect(grants.every((grant) => grant.kind === 'granted')).toBe(true);
      expect(new Set(await releaseAll(store, attempts))).toEqual(new Set(['ours']));
    });

    it('a fence is above all that were given out for its name, also when the counter is ahead', async () => {
      const store = await open();
      const last = new Map<string, bigint>();
      const round = async (terms: Partial<LockAttempt>, together: boolean): Promise<void> => {
        const attempts = many(40, 'grows').map((attempt) => ({ ...attempt, ...terms }));
        const grants: LockGrant[] = [];
        if (together) grants.push(...(await askAll(store, attempts)));
        else for (const attempt of attempts) grants.push(await store.tryAcquire(attempt));
        for (const [i, { name, fences = 1 }] of attempts.entries()) {
          const { fence } = grants[i] as LockGranted;
          expect(fence).toBeGreaterThan(last.get(name) ?? 0n);
          last.set(name, fence + BigInt(fences) - 1n);
        }
        expect(new Set(await releaseAll(store, attempts))).toEqual(new Set(['ours']));
      };
      const ahead = 1_000_000_000; // In microseconds of the clock that fences begin with.
      for (const together of [false, true, true, false, false, true]) {
        await round({ fences: ahead }, together);
        await round({}, together);
      }
    });

    it('of two owners that ask for one name in one tick one gets it, and asking twice changes nothing', async () => {
      const store = await open();
      const [one, other] = [many(20, 'twice'), many(20, 'twice')];
      const grants = await askAll(store, [...one, ...other, ...one]);
      const kinds = grants.map(({ kind }) => kind);
      expect(kinds.slice(0, 20)).toEqual(Array(20).fill('granted'));
      expect(kinds.slice(20, 40)).toEqual(Array(20).fill('held'));
      expect(grants.slice(40)).toEqual(grants.slice(0, 20));
      await releaseAll(store, other);
      expect(new Set(await releaseAll(store, one))).toEqual(new Set(['ours']));
    });

    it('a free lock for which somebody stands in the queue is not given to those behind', async () => {
      const [here, there] = [await open(), await open()];
      await askAll(
        here,
        many(20, 'kept').map((attempt) => ({ ...attempt, leaseMs: 100 })),
      );
      const first = many(20, 'kept').map((attempt) => ({ ...attempt, queueMs: 60_000 }));
      const heard = first.map(
        (waiter) => new Promise((resolve) => void there.watch?.(waiter, resolve)),
      );
      await askAll(there, first);
      const admin = ioredis(serverUrl('redis'));
      await until('the leases have ended', async () => {
        return (await admin.keys(`${prefix}*lock:kept*`)).length === 0;
      });
      const late = await askAll(here, many(20, 'kept'));
      expect(late.map(({ kind }) => kind)).toEqual(Array(20).fill('held'));
      await Promise.all(heard);
      expect(new Set(await releaseAll(there, first))).toEqual(new Set(['ours']));
    });

    it('one of the names failing fails alone, whatever its place', async () => {
      const store = await open();
      const admin = ioredis(serverUrl('redis'));
      for (const broken of [0, 1, 7, 19]) {
        const attempts = many(20, `broken ${broken}`);
        const { name } = attempts[broken] as LockAttempt;
        const key = new LockKeys(prefix).lock(name);
        await admin.hset(key, 'some', 'thing');
        const tried = await Promise.allSettled(attempts.map((a) => store.tryAcquire(a)));
        const failed = tried.flatMap((result, i) => (result.status === 'rejected' ? [i] : []));
        expect(failed).toEqual([broken]);
        const freed = await Promise.allSettled(attempts.map((a) => store.release(a)));
        const stuck = freed.flatMap((result, i) =>
          result.status === 'rejected' || result.value !== 'ours' ? [i] : [],
        );
        expect(stuck).toEqual([broken]);
        await admin.del(key);
      }
    });

    it('one of the names failing does not keep the others from being renewed', async () => {
      const store = await open();
      const attempts = many(20, 'renewed');
      await askAll(store, attempts);
      const admin = ioredis(serverUrl('redis'));
      const key = new LockKeys(prefix).lock('renewed 7');
      await admin.del(key);
      await admin.hset(key, 'some', 'thing');
      const longer = attempts.map((attempt, i) => ({ ...attempt, leaseMs: 90_000 + i * 1_000 }));
      const answers = await store.renew(longer);
      expect(answers).toEqual(attempts.map((_, i) => (i === 7 ? 'expired' : 'ours')));
      for (const [i, { name }] of attempts.entries()) {
        if (i === 7) continue;
        const leftMs = (await store.inspect(name))?.remainingMs ?? 0;
        expect(leftMs).toBeGreaterThan(85_000 + i * 1_000);
        expect(leftMs).toBeLessThanOrEqual(90_000 + i * 1_000);
      }
      await admin.del(key);
      await releaseAll(store, attempts);
    });

    it('whoever waits for one of them is served by the release', async () => {
      const [here, there] = [await open(), await open()];
      const holders = many(20, 'served');
      await askAll(here, holders);
      const waiters = many(20, 'served');
      const grants = await askAll(there, waiters);
      expect(grants.every((grant) => grant.kind === 'held')).toBe(true);
      const heard = waiters.map(
        (waiter) =>
          new Promise<LockGranted | undefined>((resolve) => void there.watch?.(waiter, resolve)),
      );
      expect(new Set(await releaseAll(here, holders))).toEqual(new Set(['ours']));
      for (const [i, granted] of (await Promise.all(heard)).entries()) {
        const state = await here.inspect(`served ${i}`);
        expect(state).toMatchObject({ owner: waiters[i]?.owner, fence: granted?.fence });
      }
      await releaseAll(there, waiters);
    });

    it('with memory exhausted each is refused before anything was done, and all can be let go', async () => {
      const full = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
      endAfter(() => full.stop());
      const operator = ioredis(full.url);
      const store = await open(full.url);
      const held = many(20, 'held');
      await askAll(store, held);
      await operator.config('SET', 'maxmemory', '1');
      const tried = await Promise.allSettled(many(20, 'new').map((a) => store.tryAcquire(a)));
      for (const result of tried) {
        expect(result).toMatchObject({
          status: 'rejected',
          reason: { code: 'STORE_UNAVAILABLE', outcome: 'not-applied', retryAfterMs: 250 },
        });
      }
      expect(new Set(await releaseAll(store, held))).toEqual(new Set(['ours']));
      expect(await operator.keys('*lock:*')).toEqual([]);
    });

    it('a connection cut in the middle leaves no lock without a holder', async () => {
      const own = await startRedis();
      endAfter(() => own.stop());
      const admin = ioredis(own.url);
      const locks = await open(own.url);
      const gate = createGate({ records: memory(), locks });
      const ends: string[] = [];
      for (let round = 0; round < 20; round++) {
        const asked = Array.from({ length: 60 }, (_, i) =>
          gate.acquire(`cut ${round} ${i}`, { waitMs: 5_000 }).then(
            (lock) => lock.release(),
            (error: unknown) => (isTurngateError(error, 'STORE_UNAVAILABLE') ? 'failed' : 'odd'),
          ),
        );
        await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        ends.push(...(await Promise.all(asked)));
      }
      expect(ends).not.toContain('odd');
      expect(ends).toContain('released');
      await expect.poll(() => admin.keys('*lock:*'), { timeout: 20_000 }).toEqual([]);
    });
  });
}
