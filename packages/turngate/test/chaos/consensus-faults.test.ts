/** etcd and ZooKeeper lose holders, leases and sessions. */
import { startEtcd, startProxy, startZookeeper, type TestServer } from '@turngate/test-servers';
import { Etcd3 } from 'etcd3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../support/clock.ts';
import { connectZookeeper, pathsUnder } from '../support/zookeeper.ts';
import { startChaos, type Worker } from './conductor.ts';
import { expectRefused } from './expectations.ts';
import { figure } from './figures.ts';
import { lapsed } from './leftovers.ts';
import { describeNeeding } from './needs.ts';
import { takeovers } from './takeover.ts';

const all = { fences: true, exclusion: true };

describeNeeding(['etcd'], 'etcd', () => {
  const leaseMs = 2_000;
  let server: TestServer;
  let admin: Etcd3;
  // The client resolves what follows the scheme: a path, if only "/", is no host to it.
  const store = (url: string) => ({ kind: 'etcd', url: new URL(url).origin });
  beforeAll(async () => {
    server = await startEtcd();
    admin = new Etcd3({ hosts: server.url });
  });
  afterAll(async () => {
    admin?.close();
    await server?.stop();
  });
  const holders = () => admin.getAll().prefix('turngate/locks/').sort('Create', 'Ascend').exec();

  it('a holder killed, frozen or cut off: the next one gets in when the lease is over', async () => {
    // A hold that had to wait keeps the lease of its place in the queue, 5 s, where that is longer.
    const bound = 5_000 + 2_500;
    const bounds = { killed: bound, frozen: bound, partitioned: bound };
    await takeovers({ name: 'etcd', serverUrl: server.url, store, leaseMs, ...bounds });
    expect(await lapsed(async () => (await holders()).kvs.map(({ key }) => String(key)))).toEqual(
      [],
    );
  });

  it('a lease revoked under its holder: the next one gets in, the holder is told', async () => {
    await using chaos = await startChaos({ store: store(server.url), leaseMs, waitMs: 5_000 });
    const holder = chaos.chance.pick(chaos.workers);
    const { id } = await holder.holdNext();
    const lease = (await holders()).kvs[0]?.lease as string;
    const at = await chaos.storeLoses(() => admin.leaseClient.leaseRevoke({ ID: lease }));
    figure('etcd, lease revoked, until the next grant', await chaos.takenOver(at, { but: holder }));
    await until('the holder is told', () => chaos.turn(id).some(({ verb }) => verb === 'lost'));
    holder.goOn();
    await chaos.works(20);
    expectRefused(chaos.turn(id));
    expect(await chaos.finish(all)).toEqual([]);
    expect(await lapsed(async () => (await holders()).kvs.map(({ key }) => String(key)))).toEqual(
      [],
    );
    const { leases } = await admin.leaseClient.leaseLeases();
    expect(leases ?? []).toEqual([]);
  });
});

describeNeeding(['java', 'zookeeper.jar'], 'ZooKeeper', () => {
  const sessionMs = 2_000;
  const leaseMs = 1_500;
  const root = '/turngate/locks';
  let server: TestServer;
  const store = (url: string) => ({ kind: 'zookeeper', url: new URL(url).host, sessionMs });
  beforeAll(async () => {
    server = await startZookeeper();
  });
  afterAll(async () => {
    await server?.stop();
  });
  /** Empty directories may stay after a crash; nodes of attempts may not. */
  async function attemptNodes(): Promise<readonly string[]> {
    const client = await connectZookeeper(server.url);
    try {
      const depth = root.split('/').length + 1;
      return await lapsed(async () => {
        return (await pathsUnder(client, root)).filter((path) => path.split('/').length > depth);
      });
    } finally {
      client.close();
    }
  }

  it('a holder killed, frozen or cut off: the next one gets in when the session is over', async () => {
    const bound = sessionMs + 1_800;
    const bounds = { killed: bound, frozen: bound, partitioned: bound };
    const serverUrl = `tcp://${server.url}`;
    await takeovers({ name: 'ZooKeeper, session 2000 ms', serverUrl, store, leaseMs, ...bounds });
    expect(await attemptNodes()).toEqual([]);
  });

  it('a session that expires: the holder is told before the next one gets in', async () => {
    await using proxy = await startProxy(`tcp://${server.url}`);
    const url = (worker: number) => (worker === 0 ? proxy.url : `tcp://${server.url}`);
    await using chaos = await startChaos({
      store: (worker: number) => store(url(worker)),
      leaseMs,
    });
    const [holder] = chaos.workers as [Worker];
    const { id } = await holder.holdNext();
    proxy.blackhole();
    await chaos.takenOver(chaos.now(), { but: holder });
    const told = chaos.turn(id).find(({ verb }) => verb === 'lost');
    expect(told?.t).toBeLessThan(chaos.grantsAfter(told?.t ?? 0, holder)[0]?.t ?? 0);
    proxy.heal();
    holder.goOn();
    const healed = chaos.now();
    const own = () => chaos.grantsAfter(healed).some(({ node }) => node === holder.node);
    await until('it works again, in a new session', own, 20_000);
    expectRefused(chaos.turn(id));
    expect(await chaos.finish(all)).toEqual([]);
    expect(await attemptNodes()).toEqual([]);
  });
});
