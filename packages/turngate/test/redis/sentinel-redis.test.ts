import { type RedisSentinel, startRedisSentinel } from '@turngate/test-servers';
import { Redis } from 'ioredis';
import { createSentinel } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LockGranted } from '../../src/contract/lock-store.ts';
import { createGate } from '../../src/index.ts';
import { memory } from '../../src/stores/memory/index.ts';
import { type RedisClient, redisLocks } from '../../src/stores/redis/index.ts';
import { pause } from '../support/clock.ts';
import { attemptAt, endAfter, freshPrefix, ioredis } from './support.ts';

let world: RedisSentinel;
beforeAll(async () => {
  world = await startRedisSentinel();
});
afterAll(async () => {
  await world?.stop();
});

async function ioredisSentinel(): Promise<RedisClient> {
  const sentinels = world.sentinels.map(({ host, port }) => ({ host, port }));
  const client = new Redis({ sentinels, name: world.masterName, maxRetriesPerRequest: null });
  client.on('error', () => {});
  endAfter(() => client.disconnect());
  return client;
}

async function nodeRedisSentinel(): Promise<RedisClient> {
  const sentinelRootNodes = world.sentinels.map(({ host, port }) => ({ host, port }));
  const client = createSentinel({ name: world.masterName, sentinelRootNodes });
  client.on('error', () => {});
  endAfter(() => client.isOpen && client.destroy());
  await client.connect();
  return client;
}

const kinds = {
  'ioredis behind Sentinel': ioredisSentinel,
  'node-redis sentinel': nodeRedisSentinel,
};

describe('Sentinel', () => {
  for (const [kind, connect] of Object.entries(kinds)) {
    it(`hands the lock over by push: ${kind}`, async () => {
      const store = redisLocks(await connect(), { prefix: freshPrefix() });
      endAfter(() => store.close());
      const [holder, waiter] = [attemptAt('pushed'), attemptAt('pushed')];
      const held = (await store.tryAcquire(holder)) as LockGranted;
      expect((await store.tryAcquire(waiter)).kind).toBe('held');
      const told = new Promise<LockGranted | undefined>(
        (resolve) => void store.watch?.(waiter, resolve),
      );
      expect(await store.release(holder)).toBe('ours');
      expect((await told)?.fence).toBeGreaterThan(held.fence);
      expect(await store.release(waiter)).toBe('ours');
    });
  }

  it('after a failover that lost the grant the next fence is greater and the old holder is told', async () => {
    const store = redisLocks(await ioredisSentinel(), { prefix: freshPrefix() });
    const holder = attemptAt('failed over');
    const before = (await store.tryAcquire(holder)) as LockGranted;
    const master = await world.master();
    // What the replicas forget as if they had never received it.
    await master.kill();
    await until('another master', async () => (await world.master()).port !== master.port);
    const promoted = ioredis((await world.master()).url);
    await until('it writes', () =>
      promoted.set('x', 'y').then(
        () => true,
        () => false,
      ),
    );
    await promoted.flushall();
    const gate = createGate({ records: memory(), locks: store });
    const lock = await gate.acquire('failed over', { waitMs: 20_000 });
    expect(lock.fence).toBeGreaterThan(before.fence);
    expect(await store.renew([holder])).toEqual(['taken']);
    expect(await lock.release()).toBe('released');
  });
});

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > endMs) expect.unreachable(`never: ${what}`);
    await pause(50);
  }
}
