import { startRedis, type TestServer } from '@turngate/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lockStoreSuite } from '../../src/conformance/index.ts';
import type { LockAttempt } from '../../src/contract/lock-store.ts';
import { createGate } from '../../src/index.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import { memory } from '../../src/stores/memory/index.ts';
import { redlock, type UnfencedLockStore } from '../../src/stores/redis/index.ts';
import { pause } from '../support/clock.ts';
import { freshPrefix, ioredis, nodeRedis } from './support.ts';

let servers: TestServer[] = [];
let admins: Redis[] = [];
beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  admins = servers.map(({ url }) => new Redis(url));
  for (const admin of admins) admin.on('error', () => {});
});
afterAll(async () => {
  for (const admin of admins) admin.disconnect();
  await Promise.all(servers.map((server) => server.stop()));
});

const attemptAt = (name: string, more: Partial<LockAttempt> = {}): LockAttempt => ({
  name,
  owner: systemRuntime.randomId(),
  leaseMs: 10_000,
  ...more,
});

let prefix = freshPrefix();
const open = (options = {}): UnfencedLockStore =>
  redlock(
    servers.map(({ url }) => ioredis(url)),
    // Generous: the machine of a test run may be busy.
    { prefix, nodeLimitMs: 5_000, ...options },
  );

/** How many nodes have any key of this test. */
async function nodesWithKeys(): Promise<number> {
  const found = await Promise.all(admins.map((admin) => admin.keys(`${prefix}*`)));
  return found.filter((keys) => keys.length > 0).length;
}

async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > endMs) expect.unreachable(`never: ${what}`);
    await pause(10);
  }
}

const lacking = {
  capabilities: {
    fencing: 'none',
    wakeup: 'poll',
    fairness: 'none',
    shares: false,
    fenceBlocks: false,
  },
  lacks: ['pass', 'forceRelease'],
} as const;

{
  let store: UnfencedLockStore | undefined;
  lockStoreSuite(
    { describe, it },
    {
      name: 'a quorum of 3 servers',
      async open() {
        store ??= redlock(
          [ioredis(servers[0]!.url), await nodeRedis(servers[1]!.url), ioredis(servers[2]!.url)],
          { prefix: freshPrefix(), nodeLimitMs: 5_000 },
        );
        return store;
      },
      passTime: pause,
      ...lacking,
    },
  );
}

describe('redlock', () => {
  beforeEach(() => {
    prefix = freshPrefix();
  });

  it('with one of three nodes gone it is granted, renewed and released; with two it is not', async () => {
    const store = open();
    const attempt = attemptAt('gone');
    const impatient = open({ nodeLimitMs: 500 });
    await servers[0]!.pause();
    expect((await store.tryAcquire(attempt)).kind).toBe('granted');
    expect(await store.renew([attempt])).toEqual(['ours']);
    expect((await store.inspect('gone'))?.owner).toBe(attempt.owner);
    expect(await store.release(attempt)).toBe('ours');
    await servers[1]!.pause();
    try {
      const sentMs = performance.now();
      await expect(impatient.tryAcquire(attemptAt('two'))).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        outcome: 'unknown',
      });
      expect(performance.now() - sentMs).toBeLessThan(4_500);
      await expect(impatient.inspect('two')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    } finally {
      await servers[0]!.resume();
      await servers[1]!.resume();
    }
    // What the paused nodes granted late is given back by the release that follows it.
    await eventually('no keys are left', async () => (await nodesWithKeys()) === 0);
  });

  it('answers that come after the lease are not a grant, and nothing is left anywhere', async () => {
    const store = open();
    const warm = attemptAt('warm');
    await store.tryAcquire(warm);
    await store.release(warm);
    await eventually('no keys are left', async () => (await nodesWithKeys()) === 0);
    await admins[0]!.client('PAUSE', 600);
    await admins[1]!.client('PAUSE', 600);
    const late = store.tryAcquire(attemptAt('late', { leaseMs: 200 }));
    await expect(late).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryAfterMs: 250 });
    await eventually('no keys are left', async () => (await nodesWithKeys()) === 0);
  });

  it('a try that cannot succeed is refused without waiting for silent nodes, and frees its minority', async () => {
    const store = open();
    const holder = attemptAt('split');
    expect((await store.tryAcquire(holder)).kind).toBe('granted');
    await eventually('all nodes have it', async () => (await nodesWithKeys()) === 3);
    await admins[2]!.del((await admins[2]!.keys(`${prefix}*`))[0]!);
    const grant = await store.tryAcquire(attemptAt('split'));
    expect(grant.kind).toBe('held');
    await eventually('its minority is free', async () => {
      return (await admins[2]!.keys(`${prefix}*`)).length === 0;
    });
    await servers[2]!.pause();
    const sentMs = performance.now();
    expect((await store.tryAcquire(attemptAt('split'))).kind).toBe('held');
    expect(performance.now() - sentMs).toBeLessThan(4_500);
    await servers[2]!.resume();
    expect(await store.release(holder)).toBe('ours');
  });

  it('a holder that lost its majority is told so by renewal', async () => {
    const store = open();
    const holder = attemptAt('lost');
    await store.tryAcquire(holder);
    await eventually('all nodes have it', async () => (await nodesWithKeys()) === 3);
    await admins[0]!.flushall();
    expect(await store.renew([holder])).toEqual(['ours']);
    await admins[1]!.flushall();
    expect(await store.renew([holder])).toEqual(['expired']);
    const next = attemptAt('lost');
    expect((await store.tryAcquire(next)).kind).toBe('granted');
    expect(await store.renew([holder])).toEqual(['taken']);
    expect(await store.release(holder)).toBe('taken');
    await store.release(next);
  });

  it('20 contenders one after another through a gate exclude each other', async () => {
    const gate = createGate({ records: memory(), locks: open() });
    let inside = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 20 }, () =>
        gate.lock('turns', { waitMs: 20_000 }, async () => {
          most = Math.max(most, ++inside);
          await pause(2);
          inside--;
        }),
      ),
    );
    expect(most).toBe(1);
    await eventually('no keys are left', async () => (await nodesWithKeys()) === 0);
  });

  it('takes at least 3 different clients', () => {
    const client = ioredis(servers[0]!.url);
    expect(() => redlock([client, client, client])).toThrow(/different/);
    expect(() => redlock([client])).toThrow(/at least 3/);
  });
});
