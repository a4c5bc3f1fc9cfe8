import { startEtcd, startProxy, type TestServer } from '@turngate/test-servers';
import { Etcd3 } from 'etcd3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LockAttempt, LockStore } from '../../src/contract/lock-store.ts';
import { LockClient } from '../../src/lock/lock-client.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import { etcdLocks } from '../../src/stores/etcd/index.ts';
import { pause, until } from '../support/clock.ts';
import { describeWith } from '../support/servers.ts';

function attempt(name: string, parts: Partial<LockAttempt> = {}): LockAttempt {
  return { name, owner: systemRuntime.randomId(), leaseMs: 5_000, ...parts };
}

describeWith('etcd', 'etcd locks', () => {
  let server: TestServer;
  let admin: Etcd3;
  const ends: (() => unknown)[] = [];
  const open = (url = server.url): LockStore => {
    const client = new Etcd3({ hosts: url });
    ends.push(() => client.close());
    return etcdLocks(client);
  };
  const leases = async (): Promise<number> => (await admin.leaseClient.leaseLeases()).leases.length;
  beforeAll(async () => {
    server = await startEtcd();
    admin = new Etcd3({ hosts: server.url });
  });
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
    admin?.close();
    await server?.stop();
  });

  it('89: whoever loses its lease while waiting has lost its place, and is not granted on it', async () => {
    const [a, b, c] = [open(), open(), open()];
    const holder = attempt('expire');
    await a.tryAcquire(holder);
    const [second, third] = [1, 2].map(() => attempt('expire', { queueMs: 30_000 }));
    if (second === undefined || third === undefined) throw new Error();
    await b.tryAcquire(second);
    await c.tryAcquire(third);
    const key = `turngate/locks/expire/${second.owner}`;
    const { kvs } = await admin.get(key).exec();
    await admin.leaseClient.leaseRevoke({ ID: kvs[0]?.lease as string });
    expect(await a.release(holder)).toBe('ours');
    expect(await b.tryAcquire(second)).toMatchObject({ kind: 'held' });
    expect(await c.tryAcquire(third)).toMatchObject({ kind: 'granted' });
    expect(await c.release(third)).toBe('ours');
    expect(await b.tryAcquire(second)).toMatchObject({ kind: 'granted' });
    await b.release(second);
  });

  it('a holder that loses its lease is told by the next renewal', async () => {
    const store = open();
    const held = attempt('revoked');
    await store.tryAcquire(held);
    const { kvs } = await admin.get(`turngate/locks/revoked/${held.owner}`).exec();
    await admin.leaseClient.leaseRevoke({ ID: kvs[0]?.lease as string });
    expect(await store.renew([held])).toEqual(['expired']);
    await store.tryAcquire(held);
    await admin.delete().key(`turngate/locks/revoked/${held.owner}`);
    expect(await store.renew([held])).toEqual(['expired']);
  });

  it('93: 1,000 waits that fail leave no lease, and a wait longer than the lease succeeds', async () => {
    const store = open();
    const before = await leases();
    const holder = attempt('crowd', { leaseMs: 100_000 });
    await store.tryAcquire(holder);
    for (let i = 0; i < 10; i++) {
      const waiters = Array.from({ length: 100 }, (_, j) =>
        attempt('crowd', j % 2 === 0 ? { queueMs: 30_000 } : {}),
      );
      await Promise.all(waiters.map((waiter) => store.tryAcquire(waiter)));
      await Promise.all(waiters.map((waiter) => store.release(waiter)));
    }
    const lapsing = Array.from({ length: 50 }, () => attempt('crowd', { queueMs: 200 }));
    await Promise.all(lapsing.map((waiter) => store.tryAcquire(waiter)));
    await until('only the holder has a lease', async () => (await leases()) === before + 1);
    const patient = attempt('crowd', { leaseMs: 1_000, queueMs: 1_000 });
    const renewing = setInterval(() => void store.renew([holder]).catch(() => {}), 500);
    ends.push(() => clearInterval(renewing));
    const endMs = Date.now() + 4_000; // The lease of the waiter is 2 s on the server at most.
    while (Date.now() < endMs) {
      expect(await store.tryAcquire(patient)).toMatchObject({ kind: 'held' });
      await pause(300);
    }
    clearInterval(renewing);
    expect(await store.release(holder)).toBe('ours');
    expect(await store.tryAcquire(patient)).toMatchObject({ kind: 'granted' });
    expect(await store.release(patient)).toBe('ours');
    await until('the count is back', async () => (await leases()) === before);
  });

  it('a restart of the server keeps the lock, and fences go on growing', async () => {
    const store = open();
    const client = new LockClient(store, systemRuntime);
    const handle = await client.acquire('restart', { leaseMs: 20_000 });
    await server.restart();
    await until(
      'the server answers',
      async () => {
        return (await store.inspect('restart').catch(() => undefined))?.fence === handle.fence;
      },
      15_000,
    );
    expect(handle.isHeld()).toBe(true);
    await until('released', async () => (await handle.release()) === 'released', 10_000);
    const next = await client.acquire('restart', {});
    expect((next.fence ?? 0n) > (handle.fence ?? 0n)).toBe(true);
    await next.release();
  });

  it('21: on a silent network the handle is lost by its deadline, and another process gets in', async () => {
    const proxy = await startProxy(server.url);
    ends.push(() => proxy.stop());
    const client = new LockClient(open(`http://127.0.0.1:${proxy.port}`), systemRuntime);
    const other = new LockClient(open(), systemRuntime);
    const handle = await client.acquire('blackhole', { leaseMs: 1_500 });
    await pause(600);
    proxy.blackhole();
    const cutMs = Date.now();
    await handle.lost;
    expect(handle.signal.aborted).toBe(true);
    expect(Date.now() - cutMs).toBeLessThanOrEqual(1_500 + 100);
    const next = await other.acquire('blackhole', { waitMs: 15_000 });
    expect((next.fence ?? 0n) > (handle.fence ?? 0n)).toBe(true);
    await next.release();
    proxy.heal();
  });

  it('a waiter is woken by the end of the one in front, across processes', async () => {
    const [a, b] = [open(), open()].map((store) => new LockClient(store, systemRuntime)) as [
      LockClient,
      LockClient,
    ];
    const handle = await a.acquire('wake', {});
    let wokenMs = 0;
    const waiting = b.run('wake', { waitMs: 20_000 }, async () => {
      wokenMs = Date.now();
    });
    await pause(300);
    const releasedMs = Date.now();
    await handle.release();
    await waiting;
    expect(wokenMs - releasedMs).toBeLessThan(500);
  });
});
