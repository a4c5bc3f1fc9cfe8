import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { startProxy, startZookeeper, type TestServer } from '@turngate/test-servers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LockAttempt } from '../../src/contract/lock-store.ts';
import { LockClient } from '../../src/lock/lock-client.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import {
  type ZookeeperClientLike,
  type ZookeeperLockStore,
  zookeeperLocks,
} from '../../src/stores/zookeeper/index.ts';
import { pause, until } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { describeWith } from '../support/servers.ts';
import {
  type Client,
  connectZookeeper,
  endSession,
  newClient,
  pathsUnder,
  startLongSessionZookeeper,
} from '../support/zookeeper.ts';

const root = '/turngate/locks';
const connectionLoss = { code: -4, getCode: () => -4 };

function attempt(name: string, parts: Partial<LockAttempt> = {}): LockAttempt {
  return { name, owner: systemRuntime.randomId(), leaseMs: 5_000, ...parts };
}

/** The client, but `verb` is handled by `instead` as long as that answers true. */
function faulty(
  client: Client,
  verb: 'create' | 'remove',
  // biome-ignore lint/suspicious/noExplicitAny: arguments differ by verb.
  instead: (real: (...args: any[]) => void, args: any[]) => boolean,
): ZookeeperClientLike {
  return new Proxy(client, {
    get(target, property) {
      // biome-ignore lint/suspicious/noExplicitAny: see above.
      const value = (target as any)[property];
      if (typeof value !== 'function') return value;
      const real = value.bind(target);
      if (property !== verb) return real;
      // biome-ignore lint/suspicious/noExplicitAny: see above.
      return (...args: any[]) => instead(real, args) || real(...args);
    },
  });
}

/** A relay that can leave the connections it has open and pass nothing on them, not even their end. */
async function muteRelay(serverPort: number) {
  const sockets = new Set<Socket>();
  const relay = createServer((client) => {
    const upstream = connect(serverPort, '127.0.0.1');
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => {});
      from.on('data', (data) => to.write(data));
      from.on('close', () => to.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  return {
    port: (relay.address() as AddressInfo).port,
    mute(): void {
      for (const socket of sockets) socket.removeAllListeners('data').removeAllListeners('close');
      for (const socket of sockets) socket.resume();
    },
    close(): void {
      relay.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

describeWith('zookeeper', 'ZooKeeper locks', () => {
  let server: TestServer;
  let admin: Client;
  const ends: (() => unknown)[] = [];
  const connect = async (timeoutMs = 10_000): Promise<Client> => {
    const client = await connectZookeeper(server.url, timeoutMs);
    ends.push(() => client.close());
    return client;
  };
  const proxied = async (timeoutMs: number) => {
    const proxy = await startProxy(`tcp://${server.url}`);
    const make = () => newClient(`127.0.0.1:${proxy.port}`, timeoutMs);
    const store: ZookeeperLockStore = zookeeperLocks(make);
    ends.push(
      () => proxy.stop(),
      () => store.close(),
    );
    return { proxy, store };
  };
  beforeAll(async () => {
    server = await startZookeeper();
    admin = await connect();
  });
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
    await server?.stop();
  });

  it('a lease longer than the session is refused, naming both', async () => {
    const store = zookeeperLocks(await connect(2_000));
    const error = await rejection(store.tryAcquire(attempt('long')), 'OPTION_INVALID');
    expect(error.message).toMatch(/leaseMs must be at most 2000, .*session timeout.* got 5000/);
  });

  it('silence of two thirds of the session timeout is a loss, told at once; the next one gets in, and the store goes on with a new session', async () => {
    const { proxy, store } = await proxied(1_500);
    const other = zookeeperLocks(await connect());
    const held = attempt('silent', { leaseMs: 1_500 });
    const losses: { owner: string; atMs: number }[] = [];
    store.onLoss(({ owner }) => losses.push({ owner, atMs: Date.now() }));
    const first = await store.tryAcquire(held);
    const startMs = Date.now();
    const renewing = setInterval(() => void store.renew([held]).catch(() => {}), 300);
    ends.push(() => clearInterval(renewing));
    await pause(700); // Renewed meanwhile: the session lives.
    expect(losses).toEqual([]);
    proxy.blackhole();
    const cutMs = Date.now();
    await until('the loss is told', () => losses.length > 0);
    clearInterval(renewing);
    expect(losses[0]?.owner).toBe(held.owner);
    const toldMs = (losses[0]?.atMs ?? 0) - cutMs;
    expect(toldMs).toBeLessThan(1_300);
    expect(Date.now() - startMs).toBeGreaterThan(700);
    expect(await store.renew([held])).toEqual(['expired']);
    const next = attempt('silent');
    let second = await other.tryAcquire(next);
    await until('the session has expired on the server', async () => {
      second = await other.tryAcquire(next);
      return second.kind === 'granted';
    });
    if (first.kind !== 'granted' || second.kind !== 'granted') throw new Error('not granted');
    expect(second.fence > first.fence).toBe(true);
    proxy.heal();
    const again = attempt('elsewhere', { leaseMs: 1_000 });
    await until('the store has a new session', async () => {
      const grant = await store.tryAcquire(again).catch(() => undefined);
      return grant?.kind === 'granted';
    });
    expect(await store.release(held)).toBe('taken');
    expect(await other.inspect('silent')).toMatchObject({ owner: next.owner });
    await other.release(next);
  });

  it('a connection that stays open while its session ends is given up, and a new session opens', async () => {
    const relay = await muteRelay(server.port);
    const make = (): Client => newClient(`127.0.0.1:${relay.port}`, 1_500);
    const store = zookeeperLocks(make, { answerLimitMs: 500 });
    ends.push(relay.close, () => store.close());
    const terms = { leaseMs: 1_000 };
    const held = attempt('zombie', terms);
    expect(await store.tryAcquire(held)).toMatchObject({ kind: 'granted' });
    relay.mute();
    await until('the session has ended on the server', async () => {
      return (await pathsUnder(admin, `${root}/zombie`)).length === 0;
    });
    const next = attempt('zombie', terms);
    await until('the store has a new session', async () => {
      const grant = await store.tryAcquire(next).catch(() => undefined);
      return grant?.kind === 'granted';
    });
    expect(await store.release(next)).toBe('ours');
  });

  it('21: on a silent network the handle is lost by its deadline', async () => {
    const { proxy, store } = await proxied(2_000);
    const client = new LockClient(store, systemRuntime);
    const handle = await client.acquire('blackhole', { leaseMs: 1_500 });
    await pause(600);
    proxy.blackhole();
    const cutMs = Date.now();
    await handle.lost;
    expect(handle.signal.aborted).toBe(true);
    expect(Date.now() - cutMs).toBeLessThanOrEqual(1_500 + 100);
    proxy.heal();
  });

  it('an expired session reaches the handle before any renewal', async () => {
    let session: Client | undefined;
    const store = zookeeperLocks(() => {
      session = newClient(server.url, 10_000);
      return session;
    });
    ends.push(() => store.close());
    let renewals = 0;
    const renew = store.renew.bind(store);
    store.renew = (attempts) => {
      renewals++;
      return renew(attempts);
    };
    const client = new LockClient(store, systemRuntime);
    const handle = await client.acquire('expired', { leaseMs: 10_000 });
    const { signal } = handle;
    await endSession(session as Client, server.url);
    await until('the signal is aborted', () => signal.aborted);
    expect(renewals).toBe(0);
    expect(String(signal.reason)).toContain('session-ended');
    const next = await client.acquire('expired', { leaseMs: 5_000 });
    expect(next.fence > handle.fence).toBe(true);
    await next.release();
  });

  it('the dying node of an earlier session is not taken for ours, though it bears our owner', async () => {
    const proxy = await startProxy(`tcp://${server.url}`);
    const former = newClient(`127.0.0.1:${proxy.port}`, 2_000);
    former.connect();
    ends.push(
      () => proxy.stop(),
      () => former.close(),
    );
    await until('connected', () => former.getState().getName() === 'SYNC_CONNECTED');
    const held = attempt('reborn', { leaseMs: 2_000, queueMs: 5_000 });
    const first = await zookeeperLocks(former).tryAcquire(held);
    proxy.refuse(); // The process "restarts": a new session, while the node of the old one lives.
    const store = zookeeperLocks(await connect());
    const second = await store.tryAcquire(held);
    expect(second.kind).toBe('held');
    let grant = second;
    await until('the old session has expired', async () => {
      grant = await store.tryAcquire(held);
      return grant.kind === 'granted';
    });
    if (first.kind !== 'granted' || grant.kind !== 'granted') throw new Error('not granted');
    expect(grant.fence > first.fence).toBe(true);
    await store.release(held);
  });

  it('a create whose reply was lost is found again by its owner: one node, then a grant', async () => {
    let lose = 1;
    const client = faulty(await connect(), 'create', (real, args) => {
      if (!String(args[0]).includes('~')) return false;
      const reply = args.pop();
      // biome-ignore lint/suspicious/noExplicitAny: see above.
      real(...args, (error: any, path: any) => {
        if (error || lose-- <= 0) reply(error, path);
        else reply(connectionLoss);
      });
      return true;
    });
    const store = zookeeperLocks(client);
    const held = attempt('lost reply', { queueMs: 1_000 });
    let tries = 0;
    await until('granted', async () => {
      tries++;
      const grant = await store.tryAcquire(held).catch(() => undefined);
      return grant?.kind === 'granted';
    });
    expect(tries).toBe(2);
    const nodes = (await pathsUnder(admin, root)).filter((path) => path.includes('lost%20reply/'));
    expect(nodes).toHaveLength(1);
    expect(await store.release(held)).toBe('ours');
  });

  it('a lost create that is given up leaves nothing: release finds it by its owner', async () => {
    let lose = 1;
    const client = faulty(await connect(), 'create', (real, args) => {
      if (!String(args[0]).includes('~')) return false;
      const reply = args.pop();
      // biome-ignore lint/suspicious/noExplicitAny: see above.
      real(...args, (error: any, path: any) => {
        if (error || lose-- <= 0) reply(error, path);
        else reply(connectionLoss);
      });
      return true;
    });
    const store = zookeeperLocks(client);
    const ghost = attempt('ghost', { queueMs: 1_000 });
    await rejection(store.tryAcquire(ghost), 'STORE_UNAVAILABLE');
    expect(await store.inspect('ghost')).toMatchObject({ owner: ghost.owner });
    await store.release(ghost);
    expect(await store.inspect('ghost')).toBeUndefined();
  });

  it('91: a connection lost in release does not block the next acquire', async () => {
    let lose = 1;
    const client = faulty(await connect(), 'remove', (_, args) => {
      if (!String(args[0]).includes('~') || lose-- <= 0) return false;
      args.pop()(connectionLoss); // Never sent.
      return true;
    });
    const store = zookeeperLocks(client);
    const held = attempt('release');
    await store.tryAcquire(held);
    await rejection(store.release(held), 'STORE_UNAVAILABLE');
    const next = attempt('release', { queueMs: 5_000 });
    await until('the next one is granted', async () => {
      return (await store.tryAcquire(next)).kind === 'granted';
    });
    await store.release(next);
  });

  it('1,000 waits that are given up, lapse or lose their holder leave no node and no directory', async () => {
    const store = zookeeperLocks(await connect());
    const before = (await pathsUnder(admin, root)).length;
    const holders = Array.from({ length: 10 }, (_, i) =>
      attempt(`crowd ${i}`, { leaseMs: 10_000 }),
    );
    for (const holder of holders) await store.tryAcquire(holder);
    for (let round = 0; round < 10; round++) {
      await store.renew(holders);
      const waiters = Array.from({ length: 100 }, (_, i) =>
        attempt(`crowd ${i % 10}`, { queueMs: i % 4 === 0 ? 300 : 10_000 }),
      );
      await Promise.all(waiters.map((waiter) => store.tryAcquire(waiter)));
      expect((await pathsUnder(admin, root)).length).toBeGreaterThan(before + 75);
      await Promise.all(waiters.filter((_, i) => i % 4 !== 0).map((each) => store.release(each)));
    }
    for (const holder of holders) expect(await store.release(holder)).toBe('ours');
    await until('everything is gone', async () => {
      return (await pathsUnder(admin, root)).length === before;
    });
  });

  it('a killed and restarted server keeps the lock within the session, and fences go on growing', async () => {
    const lasting = await startLongSessionZookeeper();
    const client = await connectZookeeper(lasting.url, 100_000);
    ends.push(
      () => lasting.stop(),
      () => client.close(),
    );
    const store = zookeeperLocks(client);
    const held = attempt('restart', { leaseMs: 90_000 });
    const first = await store.tryAcquire(held);
    await lasting.restart();
    let answers: unknown;
    await until(
      'a renewal is answered',
      async () => {
        answers = await store.renew([held]).catch((error: unknown) => error);
        return Array.isArray(answers);
      },
      40_000,
    );
    expect(answers).toEqual(['ours']);
    expect(await store.release(held)).toBe('ours');
    const next = attempt('restart');
    const second = await store.tryAcquire(next);
    if (first.kind !== 'granted' || second.kind !== 'granted') throw new Error('not granted');
    expect(second.fence > first.fence).toBe(true);
    await store.release(next);
  });

  it('two processes take turns in order, woken by the end of the one in front', async () => {
    const [a, b] = [await connect(), await connect()].map((client) => {
      return new LockClient(zookeeperLocks(client), systemRuntime);
    }) as [LockClient, LockClient];
    const order: number[] = [];
    const first = await a.acquire('turns', { leaseMs: 5_000 });
    const rest = [];
    for (let i = 0; i < 6; i++) {
      const client = i % 2 === 0 ? b : a;
      const options = { leaseMs: 5_000, waitMs: 20_000 };
      rest.push(
        client.run('turns', options, async () => {
          order.push(i);
        }),
      );
      await pause(30);
    }
    const startMs = Date.now();
    await first.release();
    await Promise.all(rest);
    expect([...order].sort()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(Date.now() - startMs).toBeLessThan(2_000); // Far from a poll of a second each.
  });
});
