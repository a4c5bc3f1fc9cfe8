import { expect, it } from 'vitest';
import type { LockAttempt, LockGranted, LockShare } from '../../src/contract/lock-store.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import { type ClosableLockStore, redisLocks } from '../../src/stores/redis/index.ts';
import { pause } from '../support/clock.ts';
import { describeWith, serverUrl } from '../support/servers.ts';
import { endAfter, freshPrefix, ioredis } from './support.ts';

function share(name: string, of: LockShare, more: Partial<LockAttempt> = {}): LockAttempt {
  const owner = systemRuntime.randomId();
  return { name, owner, leaseMs: 60_000, queueMs: 5_000, share: of, ...more };
}

const many = 1_000;
const reader = (name: string, more = {}) => share(name, { take: 1, limit: many }, more);
const writer = (name: string, more = {}) =>
  share(name, { take: many, limit: many, urgent: true }, more);

describeWith('redis', 'shares in Redis', () => {
  const prefix = freshPrefix();
  const open = (options = {}): ClosableLockStore => {
    const store = redisLocks(ioredis(serverUrl('redis')), { prefix, ...options });
    endAfter(() => store.close());
    return store;
  };
  const told = (store: ClosableLockStore, attempt: LockAttempt) =>
    new Promise<LockGranted | undefined>((resolve) => void store.watch?.(attempt, resolve));

  it('never gives out more permits than the limit, several at once or none', async () => {
    const store = open();
    const tries = Array.from({ length: 40 }, () =>
      store.tryAcquire(share('permits', { take: 3, limit: 10 }, { queueMs: 0 })),
    );
    const granted = (await Promise.all(tries)).filter(({ kind }) => kind === 'granted');
    expect(granted.length).toBe(3);
    expect((await store.inspect('permits'))?.holders).toBe(3);
    expect((await store.tryAcquire(share('permits', { take: 1, limit: 10 }))).kind).toBe('granted');
    expect((await store.tryAcquire(share('permits', { take: 1, limit: 10 }))).kind).toBe('held');
  });

  it('the same attempt again gives the same fence and takes nothing more', async () => {
    const store = open();
    const mine = share('again', { take: 2, limit: 4 });
    const first = await store.tryAcquire(mine);
    expect(await store.tryAcquire(mine)).toEqual(first);
    expect((await store.tryAcquire(share('again', { take: 2, limit: 4 }))).kind).toBe('granted');
  });

  it('an expired permit is free for others, its release answers expired, the count stays right', async () => {
    const store = open();
    const [lost, kept] = [
      share('swept', { take: 1, limit: 2 }, { leaseMs: 100 }),
      share('swept', { take: 1, limit: 2 }, { leaseMs: 100 }),
    ];
    await store.tryAcquire(lost);
    await store.tryAcquire(kept);
    expect(await store.renew([{ ...kept, leaseMs: 60_000 }])).toEqual(['ours']);
    await pause(130);
    const next = share('swept', { take: 1, limit: 2 });
    expect((await store.tryAcquire(next)).kind).toBe('granted');
    expect(await store.renew([lost, kept, next])).toEqual(['expired', 'ours', 'ours']);
    expect(await store.release(lost)).toBe('expired');
    expect((await store.tryAcquire(share('swept', { take: 1, limit: 2 }))).kind).toBe('held');
    expect(await store.release(kept)).toBe('ours');
    expect(await store.release(kept)).toBe('expired');
    expect((await store.inspect('swept'))?.holders).toBeGreaterThanOrEqual(1);
  });

  for (const wakeup of ['push', 'poll'] as const) {
    it(`a writer waits for the readers it found, and readers after it wait for it (${wakeup})`, async () => {
      const store = open({ wakeup });
      const name = `rw ${wakeup}`;
      const readers = [reader(name), reader(name)];
      for (const one of readers) expect((await store.tryAcquire(one)).kind).toBe('granted');
      const waits = writer(name);
      expect((await store.tryAcquire(waits)).kind).toBe('held');
      const late = [reader(name), reader(name), reader(name)];
      for (const one of late) expect((await store.tryAcquire(one)).kind).toBe('held');
      const writes = told(store, waits);
      for (const one of readers) await store.release(one);
      if (wakeup === 'push') expect((await writes)?.kind).toBe('granted');
      for (const one of late) expect((await store.tryAcquire(one)).kind).toBe('held');
      expect((await store.tryAcquire(waits)).kind).toBe('granted');
      expect((await store.inspect(name))?.owner).toBe(waits.owner);
      const read = late.map((one) => told(store, one));
      await store.release(waits);
      if (wakeup === 'push') await Promise.all(read);
      for (const one of late) expect((await store.tryAcquire(one)).kind).toBe('granted');
      for (const one of late) expect(await store.release(one)).toBe('ours');
      expect(await store.inspect(name)).toBeUndefined();
    });
  }

  it('leaves no key behind but the fence counters', async () => {
    const own = freshPrefix();
    const store = open({ prefix: own });
    const attempts = Array.from({ length: 300 }, (_, i) => (i % 5 ? reader('rw') : writer('rw')));
    await Promise.all(attempts.map((attempt) => store.tryAcquire(attempt)));
    await Promise.all(attempts.map((attempt) => store.release(attempt)));
    const keys = await ioredis(serverUrl('redis')).keys(`${own}*`);
    expect(keys.filter((key) => !key.endsWith(':fence'))).toEqual([]);
  });

  it('forceRelease takes all permits', async () => {
    const store = open();
    await store.tryAcquire(share('all', { take: 1, limit: 2 }));
    await store.tryAcquire(share('all', { take: 1, limit: 2 }));
    expect(await store.forceRelease?.('all')).toBe('released');
    expect((await store.tryAcquire(share('all', { take: 2, limit: 2 }))).kind).toBe('granted');
  });
});
