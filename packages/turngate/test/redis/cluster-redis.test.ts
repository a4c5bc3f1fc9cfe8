import { startRedisCluster, type TestServerGroup } from '@turngate/test-servers';
import { Cluster } from 'ioredis';
import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lockStoreSuite } from '../../src/conformance/index.ts';
import type { LockAttempt, LockGranted } from '../../src/contract/lock-store.ts';
import {
  type ClosableLockStore,
  type RedisClient,
  redisLocks,
} from '../../src/stores/redis/index.ts';
import { pause } from '../support/clock.ts';
import { attemptAt, endAfter, freshPrefix, ioredis } from './support.ts';

let cluster: TestServerGroup;
beforeAll(async () => {
  cluster = await startRedisCluster({ masters: 3, replicas: 0 });
});
afterAll(async () => {
  await cluster?.stop();
});

async function ioredisCluster(): Promise<RedisClient> {
  const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
  const client = new Cluster(nodes, { redisOptions: { keyPrefix: 'app:' } });
  client.on('error', () => {});
  endAfter(() => client.disconnect());
  return client;
}

async function nodeRedisCluster(): Promise<RedisClient> {
  const client = createCluster({ rootNodes: cluster.nodes.map(({ url }) => ({ url })) });
  client.on('error', () => {});
  endAfter(() => client.isOpen && client.destroy());
  await client.connect();
  return client;
}

const kinds = { 'ioredis Cluster': ioredisCluster, 'node-redis cluster': nodeRedisCluster };

for (const [kind, connect] of Object.entries(kinds)) {
  describe(kind, () => {
    const prefix = freshPrefix();
    let store: ClosableLockStore | undefined;
    const open = async (): Promise<ClosableLockStore> => {
      store ??= redisLocks(await connect(), { prefix });
      return store;
    };
    lockStoreSuite({ describe, it }, { name: kind, open, passTime: pause });

    it('tells the first in the queue to ask, keeps the lock free for it, and grants it then', async () => {
      const store = await open();
      const [holder, first, second] = [attemptAt('ask'), attemptAt('ask'), attemptAt('ask')];
      const held = (await store.tryAcquire(holder)) as LockGranted;
      await store.tryAcquire(first);
      await store.tryAcquire(second);
      const told = new Promise((resolve) => void store.watch?.(first, resolve));
      await store.release(holder);
      expect(await told).toBeUndefined();
      expect((await store.tryAcquire(second)).kind).toBe('held');
      const granted = (await store.tryAcquire(first)) as LockGranted;
      expect(granted.fence).toBeGreaterThan(held.fence);
      await store.release(first);
      await store.release(second);
    });

    it('renews 1,000 locks of all slots with at most 128 commands, also after a node forgot its scripts', async () => {
      const store = await open();
      const attempts = Array.from({ length: 1_000 }, (_, i) => attemptAt(`many {${i}} ${i}`));
      await Promise.all(attempts.map((attempt) => store.tryAcquire(attempt)));
      await ioredis(cluster.nodes[1]!.url).script('FLUSH');
      const all = (answer: string) => attempts.map(() => answer);
      expect(await store.renew(attempts)).toEqual(all('ours'));
      const nodes = cluster.nodes.map(({ url }) => ioredis(url));
      for (const node of nodes) await node.config('RESETSTAT');
      expect(await store.renew(attempts)).toEqual(all('ours'));
      let commands = 0;
      for (const node of nodes) {
        commands += Number(
          /cmdstat_evalsha:calls=(\d+)/.exec(await node.info('commandstats'))?.[1],
        );
      }
      expect(commands).toBeLessThanOrEqual(128);
      const answers = await Promise.all(attempts.map((attempt) => store.release(attempt)));
      expect(answers).toEqual(all('ours'));
    });
  });
}

describe('a client that does not know it talks to a node of a cluster', () => {
  it('has many names of one tick answered slot by slot, each with its own answer', async () => {
    const store = redisLocks(ioredis(cluster.nodes[0]!.url), { prefix: freshPrefix() });
    const mine: LockAttempt[] = [];
    for (let i = 0; mine.length < 40; i++) {
      const attempt = attemptAt(`behind a proxy ${i}`);
      const tried = await store.tryAcquire(attempt).catch((error: Error) => error);
      if (!(tried instanceof Error)) mine.push(attempt);
    }
    const all = (work: (attempt: LockAttempt) => Promise<unknown>) => Promise.all(mine.map(work));
    expect(new Set(await all((attempt) => store.release(attempt)))).toEqual(new Set(['ours']));
    const grants = (await all((attempt) => store.tryAcquire(attempt))) as LockGranted[];
    expect(grants.every(({ kind }) => kind === 'granted')).toBe(true);
    expect(await store.renew(mine)).toEqual(mine.map(() => 'ours'));
    expect(new Set(await all((attempt) => store.release(attempt)))).toEqual(new Set(['ours']));
    store.close();
  });
});
