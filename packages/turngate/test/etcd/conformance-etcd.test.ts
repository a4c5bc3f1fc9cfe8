import { Etcd3 } from 'etcd3';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { lockStoreSuite } from '../../src/conformance/index.ts';
import type { LockStore } from '../../src/contract/lock-store.ts';
import { etcdLocks } from '../../src/stores/etcd/index.ts';
import { pause } from '../support/clock.ts';
import { describeWith, serverUrl } from '../support/servers.ts';

describeWith('etcd', 'etcd', () => {
  let client: Etcd3;
  let store: LockStore;
  beforeAll(() => {
    client = new Etcd3({ hosts: serverUrl('etcd') });
    store = etcdLocks(client);
  });
  afterAll(() => client?.close());
  lockStoreSuite(
    { describe, it },
    {
      name: 'etcd',
      capabilities: { shares: false, fenceBlocks: false },
      lacks: ['pass'],
      open: async () => store,
      passTime: pause,
    },
  );
});
