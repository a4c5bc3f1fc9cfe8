import { describe, it } from 'vitest';
import { recordStoreSuite } from '../../src/conformance/index.ts';
import { redisRecords } from '../../src/stores/redis/index.ts';
import { pause } from '../support/clock.ts';
import { describeWith, serverUrl } from '../support/servers.ts';
import { clientKinds, freshPrefix } from './support.ts';

describeWith('redis', 'record laws on Redis', () => {
  for (const [name, connect] of Object.entries(clientKinds)) {
    let store: Promise<ReturnType<typeof redisRecords>> | undefined;
    const lines: string[] = [];
    const prefix = freshPrefix();
    recordStoreSuite<undefined>(
      { describe, it },
      {
        name: `Redis, ${name}`,
        open() {
          store ??= connect(serverUrl('redis')).then((client) => redisRecords(client, { prefix }));
          return store;
        },
        write: async (_tx, line) => void lines.push(line),
        written: async (start) => lines.filter((line) => line.startsWith(start)),
        ownTransaction: async () => {
          throw new Error('there are no transactions');
        },
        passTime: pause,
        notAtomic: 'the record and the work are not one transaction',
        selfPurging: 'the server deletes expired records by itself',
        noAdmin: 'records in Redis are listed by its own tools',
      },
    );
  }
});
