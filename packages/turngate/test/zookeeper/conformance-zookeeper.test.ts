import { afterAll, beforeAll, describe, it } from 'vitest';
import { lockStoreSuite } from '../../src/conformance/index.ts';
import { type ZookeeperLockStore, zookeeperLocks } from '../../src/stores/zookeeper/index.ts';
import { pause } from '../support/clock.ts';
import { describeWith } from '../support/servers.ts';
import {
  type Client,
  endSession,
  newClient,
  startLongSessionZookeeper,
} from '../support/zookeeper.ts';

// The laws use leases of a minute, and a lease may not be longer than the session.
describeWith('zookeeper', 'ZooKeeper', () => {
  let server: Awaited<ReturnType<typeof startLongSessionZookeeper>>;
  let client: Client;
  let store: ZookeeperLockStore;
  beforeAll(async () => {
    server = await startLongSessionZookeeper();
    store = zookeeperLocks(() => {
      client = newClient(server.url, 100_000);
      return client;
    });
  });
  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });
  lockStoreSuite(
    { describe, it },
    {
      name: 'zookeeper',
      capabilities: { shares: false, fenceBlocks: false },
      lacks: ['pass'],
      endSession: () => endSession(client, server.url),
      open: async () => store,
      passTime: pause,
    },
  );
});
