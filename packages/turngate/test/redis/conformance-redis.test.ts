import { describe, it } from 'vitest';
import { lockStoreSuite } from '../../src/conformance/index.ts';
import { type ClosableLockStore, redisLocks } from '../../src/stores/redis/index.ts';
import { pause } from '../support/clock.ts';
import { describeWith, serverUrl } from '../support/servers.ts';
import { clientKinds, endAfter, freshPrefix } from './support.ts';

describeWith('redis', 'lock laws on Redis', () => {
  for (const [name, connect] of Object.entries(clientKinds)) {
    for (const wakeup of ['push', 'poll'] as const) {
      let store: Promise<ClosableLockStore> | undefined;
      const prefix = freshPrefix();
      const open = async (): Promise<ClosableLockStore> => {
        const opened = redisLocks(await connect(serverUrl('redis')), { prefix, wakeup });
        endAfter(() => opened.close());
        return opened;
      };
      lockStoreSuite(
        { describe, it },
        {
          name: `${name}, ${wakeup}`,
          open() {
            store ??= open();
            return store;
          },
          passTime: pause,
          capabilities: { wakeup },
        },
      );
    }
  }
});
