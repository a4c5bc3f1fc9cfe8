/** Several Redis servers as one: Sentinel, Cluster, and a quorum of independent ones. */
import {
  startProxy,
  startRedis,
  startRedisCluster,
  startRedisSentinel,
  type TestServer,
} from '@turngate/test-servers';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { pause } from '../support/clock.ts';
import { startChaos } from './conductor.ts';
import { figure } from './figures.ts';
import { redisLeftovers } from './leftovers.ts';
import { describeNeeding } from './needs.ts';
import { repeatedly } from './schedule.ts';

const leaseMs = 1_000;
/** Whether the promoted replica had the grant is chance: two may hold, with different fences. */
const failedOver = { fences: true, exclusion: false };
const addresses = (nodes: readonly TestServer[]) => nodes.map(({ host, port }) => ({ host, port }));

describeNeeding(['redis-server', 'redis-cli'], 'Redis groups', () => {
  it('Sentinel: the master is killed, work goes on with greater fences', async () => {
    await using world = await startRedisSentinel();
    const store = {
      kind: 'sentinel',
      sentinels: addresses(world.sentinels),
      name: world.masterName,
    };
    await using chaos = await startChaos({ store, leaseMs, waitMs: 8_000 });
    await chaos.works(20);
    const holder = chaos.chance.pick(chaos.workers);
    await holder.holdNext();
    const old = await world.master();
    const at = await chaos.storeLoses(() => old.kill());
    figure(
      'Redis Sentinel, master killed, until the next grant',
      await chaos.takenOver(at, { but: holder }),
    );
    holder.goOn();
    await old.restart(); // It comes back as a replica.
    await chaos.works(30);
    expect(await chaos.finish(failedOver)).toEqual([]);
    expect(await redisLeftovers([(await world.master()).url])).toEqual([]);
  });

  it('Cluster: the master of the name is killed, its replica takes over with greater fences', async () => {
    await using cluster = await startRedisCluster();
    const store = { kind: 'cluster', nodes: addresses(cluster.nodes) };
    await using chaos = await startChaos({ store, leaseMs, waitMs: 8_000 });
    await chaos.works(20);
    const holder = chaos.chance.pick(chaos.workers);
    await holder.holdNext();
    const owner = await masterWithKeys(cluster.nodes);
    const at = await chaos.storeLoses(() => owner.kill());
    figure(
      'Redis Cluster, master killed, until the next grant',
      await chaos.takenOver(at, { but: holder }),
    );
    holder.goOn();
    await chaos.works(30);
    expect(await chaos.finish(failedOver)).toEqual([]);
    const alive = cluster.nodes.filter((node) => node !== owner);
    expect(await redisLeftovers(alive.map(({ url }) => url))).toEqual([]);
  });

  it('Redlock with one of three nodes down: a holder killed, no update lost', async () => {
    await using nodes = await threeNodes();
    const store = { kind: 'redlock', urls: nodes.urls };
    await using chaos = await startChaos({ store, leaseMs });
    await chaos.works(10);
    await nodes.servers[2]?.kill();
    await chaos.works(20);
    await repeatedly(async () => {
      const victim = chaos.chance.pick(chaos.alive);
      await victim.holdNext();
      const ms = await chaos.takenOver(await chaos.replace(victim), { but: victim });
      figure('Redlock, one node of three down, holder killed (lease 1000 ms)', ms);
      expect(ms).toBeLessThan(leaseMs + 1_000);
    });
    expect(await chaos.finish({ fences: false, exclusion: true })).toEqual([]);
    expect(await redisLeftovers(nodes.urls.slice(0, 2))).toEqual([]);
  });

  it('Redlock with one of three nodes slow: no update lost', async () => {
    await using nodes = await threeNodes();
    await using proxy = await startProxy(nodes.urls[2] ?? '');
    const store = { kind: 'redlock', urls: [nodes.urls[0], nodes.urls[1], proxy.url] };
    await using chaos = await startChaos({ store, leaseMs });
    await repeatedly(async () => {
      proxy.delayMs = chaos.chance.between(0, 400);
      await pause(chaos.chance.between(50, 400));
    });
    await chaos.works(20);
    proxy.heal();
    expect(await chaos.finish({ fences: false, exclusion: true })).toEqual([]);
    expect(await redisLeftovers(nodes.urls)).toEqual([]);
  });
});

async function masterWithKeys(nodes: readonly TestServer[]): Promise<TestServer> {
  for (const node of nodes) {
    const client = new Redis(node.url);
    const role = ((await client.call('ROLE')) as string[])[0];
    const keys = role === 'master' ? await client.keys('turngate:*:lock:hot') : [];
    client.disconnect();
    if (keys.length > 0) return node;
  }
  throw new Error('no master has the lock');
}

async function threeNodes() {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  const stop = async () => void (await Promise.all(servers.map((server) => server.stop())));
  return { servers, urls: servers.map(({ url }) => url), [Symbol.asyncDispose]: stop };
}
