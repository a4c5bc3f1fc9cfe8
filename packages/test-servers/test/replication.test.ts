import { expect, onTestFinished, test } from 'vitest';
import { askRedis } from '../src/ask.ts';
import { startEtcd, startRedisCluster, startRedisSentinel, startZookeeper } from '../src/index.ts';
import { describeWith, isListening, ownTemporaryFiles, until } from './support.ts';

describeWith(['redis-server', 'redis-cli'], 'several Redis', () => {
  test('a cluster is ready for a failover at once, and its dead master comes back', async () => {
    const files = await ownTemporaryFiles();
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const [first, ...others] = cluster.nodes;
    expect(cluster.nodes).toHaveLength(6);
    expect(cluster.url.split(',')).toEqual(cluster.nodes.map(({ url }) => url));
    const replicas = cluster.nodes.slice(3);

    await first?.kill();
    // By the new role of a former replica: counting masters would count the dead one.
    await until('a replica took over', async () => {
      const roles = await Promise.all(replicas.map(({ port }) => roleOf(port)));
      return roles.includes('master');
    });
    await first?.restart();
    await until('the old master follows', async () => (await roleOf(first?.port)) === 'slave');

    await cluster.stop();
    for (const { port } of others) expect(await isListening(port)).toBe(false);
    expect(await files.left()).toEqual([]);
  });

  test('sentinels are ready for a failover at once, and its dead master comes back', async () => {
    const files = await ownTemporaryFiles();
    const group = await startRedisSentinel();
    onTestFinished(() => group.stop());
    const master = await group.master();
    expect(master).toBe(group.nodes[0]);

    await master.kill();
    await until('the sentinels agree on another', async () => {
      return (await group.master().catch(() => master)) !== master;
    });
    const next = await group.master();
    await until('the new master is one', async () => (await roleOf(next.port)) === 'master');
    await master.restart();
    await until('the old master follows', async () => (await roleOf(master.port)) === 'slave');

    await group.stop();
    expect(await isListening(next.port)).toBe(false);
    expect(await files.left()).toEqual([]);
  });
});

for (const { name, programs, start } of [
  { name: 'etcd', programs: ['etcd'], start: () => startEtcd({ nodes: 3 }) },
  {
    name: 'ZooKeeper',
    programs: ['java', 'zookeeper.jar'],
    start: () => startZookeeper({ nodes: 3 }),
  },
]) {
  describeWith(programs, `three ${name}`, () => {
    test('any member can be killed and comes back', async () => {
      const files = await ownTemporaryFiles();
      const group = await start();
      onTestFinished(() => group.stop());
      expect(group.url.split(',')).toHaveLength(3);
      for (const node of group.nodes) {
        await node.kill();
        // Ready means that it has found the others again.
        await node.restart();
      }
      await group.stop();
      expect(await files.left()).toEqual([]);
    });
  });
}

async function roleOf(port: number | undefined): Promise<string | undefined> {
  return /role:(\w+)/.exec(await askRedis(port ?? 0, 'INFO replication'))?.[1];
}
