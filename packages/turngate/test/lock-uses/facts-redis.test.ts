/** Failures that other lock libraries had on a real Redis, as laws. Numbers: docs/lock-experiments.md. */
import { startProxy, startRedis, type TestServer } from '@turngate/test-servers';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { LockClient } from '../../src/lock/lock-client.ts';
import type { LockHandle } from '../../src/lock/lock-handle.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import { redisLocks } from '../../src/stores/redis/index.ts';
import { pause, until } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { describeWith } from '../support/servers.ts';

const unhandled: unknown[] = [];
const note = (reason: unknown): void => void unhandled.push(reason);

describeWith('redis', 'locks on a real Redis', () => {
  let server: TestServer;
  let admin: Redis;
  const ends: (() => unknown)[] = [];
  beforeAll(async () => {
    process.on('unhandledRejection', note);
    server = await startRedis();
    admin = new Redis(server.url);
    admin.on('error', () => {});
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
    await admin.flushall();
  });
  afterAll(async () => {
    admin?.disconnect();
    await server?.stop();
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  /** A process: a client, a store and a lock client of its own. */
  function member(prefix: string, url = server.url): LockClient {
    const client = new Redis(url);
    client.on('error', () => {});
    const store = redisLocks(client, { prefix });
    ends.push(
      () => client.disconnect(),
      () => store.close(),
    );
    return new LockClient(store, systemRuntime);
  }

  async function scriptCalls(): Promise<number> {
    const stats = await admin.info('commandstats');
    return [...stats.matchAll(/cmdstat_evalsha:calls=(\d+)/g)].reduce(
      (n, [, k]) => n + Number(k),
      0,
    );
  }

  it('11: an acquire that timed out while the server paused leaves a free lock and nothing to renew', async () => {
    const [a, b] = [member('f11:'), member('f11:')];
    await (await a.acquire('warm')).release();
    await (await b.acquire('warm')).release();
    await admin.call('CLIENT', 'PAUSE', '1500', 'ALL');
    const startMs = performance.now();
    const error = await a.acquire('x', { waitMs: 300, leaseMs: 1_000 }).catch((caught) => caught);
    expect(error).toMatchObject({ code: expect.stringMatching(/BUSY|STORE_UNAVAILABLE/) });
    expect(performance.now() - startMs).toBeLessThan(1_300);
    await admin.ping(); // Answered when the pause is over.
    const next = await b.acquire('x', { waitMs: 2_000 });
    expect(a.heldCount).toBe(0);
    await next.release();
  });

  it('13: 20,000 holds outlive five leases, none lost, with few commands', {
    timeout: 90_000,
  }, async () => {
    const client = member('f13:');
    const leaseMs = 5_000;
    const handles: LockHandle[] = [];
    for (let i = 0; i < 20_000; i += 500) {
      const names = Array.from({ length: 500 }, (_, k) => `n${i + k}`);
      handles.push(...(await Promise.all(names.map((name) => client.acquire(name, { leaseMs })))));
    }
    const before = await scriptCalls();
    await pause(5 * leaseMs);
    const calls = (await scriptCalls()) - before;
    expect(handles.filter((handle) => handle.isHeld())).toHaveLength(20_000);
    // Five leases are at most 20 renewals of each lock (jitter included).
    expect(calls).toBeLessThanOrEqual(0.02 * 20_000 * 20);
    await Promise.all(handles.map((handle) => handle.release()));
    expect(client.heldCount).toBe(0);
  });

  it('31: a waiter that only waits costs at most one command a second', async () => {
    const holder = member('f31:');
    const held = await holder.acquire('x', { leaseMs: 60_000 });
    const waiters = Array.from({ length: 10 }, () => member('f31:'));
    const waiting = waiters.map((waiter) =>
      waiter.acquire('x', { waitMs: 60_000 }).then((lock) => lock.release()),
    );
    await until('all stand in the queue', async () => {
      return ((await holder.inspect('x'))?.waiters ?? 0) === 10;
    });
    await pause(500);
    const before = await scriptCalls();
    await pause(6_000);
    const calls = (await scriptCalls()) - before;
    expect(calls).toBeLessThanOrEqual(10 * 6 * 1);
    expect(calls).toBeGreaterThan(0);
    await held.release();
    expect(await Promise.all(waiting)).toEqual(Array(10).fill('released'));
  });

  it('35: 200 names with 20 waiters each are all served, none much later than the others', async () => {
    const processes = [member('f35:'), member('f35:')];
    const doneMs: number[] = [];
    const startMs = performance.now();
    await Promise.all(
      Array.from({ length: 200 }, async (_, name) => {
        await Promise.all(
          Array.from({ length: 20 }, async (_, i) => {
            const client = processes[i % 2] as LockClient;
            await client.run(`n${name}`, { waitMs: 60_000 }, () => pause(5));
          }),
        );
        doneMs.push(performance.now() - startMs);
      }),
    );
    expect(doneMs).toHaveLength(200);
    expect(Math.max(...doneMs) / Math.min(...doneMs)).toBeLessThanOrEqual(2);
  });

  it('45: an acquire whose connection drops settles in time, and the next one works', async () => {
    const proxy = await startProxy(server.url);
    ends.push(() => proxy.stop());
    const client = member('f45:', proxy.url);
    await (await client.acquire('warm')).release();
    proxy.blackhole();
    const startMs = performance.now();
    const cut = client.acquire('x', { waitMs: 2_000, leaseMs: 1_000 }).catch((caught) => caught);
    await pause(100);
    proxy.cut();
    await pause(100);
    proxy.heal();
    const settledAs = await cut;
    expect(performance.now() - startMs).toBeLessThan(3_000);
    if (settledAs instanceof Error) {
      expect(settledAs).toMatchObject({ code: expect.stringMatching(/BUSY|STORE_UNAVAILABLE/) });
    } else {
      await settledAs.release();
    }
    const next = await client.acquire('x', { waitMs: 5_000 });
    expect(await next.release()).toBe('released');
  });

  it('59: a lock that the server evicted is lost at the next renewal, and its fence is too old', async () => {
    const [a, b] = [member('f59:'), member('f59:')];
    const held = await a.acquire('x', { leaseMs: 3_000 });
    const info = await admin.info('memory');
    const used = Number(/used_memory:(\d+)/.exec(info)?.[1]);
    await admin.config('SET', 'maxmemory-policy', 'allkeys-random');
    await admin.config('SET', 'maxmemory', String(used + 500_000));
    ends.push(() => admin.config('SET', 'maxmemory', '0'));
    const junk = 'j'.repeat(1_000);
    await until(
      'it is evicted',
      async () => {
        const batch = admin.pipeline();
        for (let i = 0; i < 500; i++) batch.set(`junk:${systemRuntime.randomId()}`, junk);
        await batch.exec();
        return (await b.inspect('x')) === undefined || !held.isHeld();
      },
      20_000,
    );
    await held.lost;
    await admin.config('SET', 'maxmemory', '0');
    const next = await b.acquire('x');
    expect(next.fence > held.fence).toBe(true);
    await next.release();
  });

  it('67: releasing an expired lock is one round trip with a typed answer', async () => {
    const client = member('f67:');
    const held = await client.acquire('x', { leaseMs: 200, renew: false });
    await held.lost;
    await pause(300); // The news of the loss has freed it in the background.
    const before = await scriptCalls();
    expect(await held.release()).toBe('expired');
    expect((await scriptCalls()) - before).toBe(1);
  });

  it('5: a killed server ends a hold by its deadline; 79: asking who holds it then throws', async () => {
    const own = await startRedis();
    ends.push(() => own.stop());
    const client = member('f5:', own.url);
    const leaseMs = 1_000;
    const startMs = performance.now();
    const held = await client.acquire('x', { leaseMs });
    const { signal } = held;
    await own.kill();
    await until('it is lost', () => signal.aborted);
    expect(performance.now() - startMs).toBeLessThan(2 * leaseMs);
    expect(held.isHeld()).toBe(false);
    await rejection(client.inspect('x'), 'STORE_UNAVAILABLE');
    await pause(leaseMs);
  });
});
