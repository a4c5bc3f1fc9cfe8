/** Processes that poll for a lock which another one always wants again. */
import { expect, it } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { describeWith } from '../support/servers.ts';
import { startChaos } from './conductor.ts';

describeWith('postgres', 'a store without a queue', () => {
  it('a process with waiters of its own does not keep others out for ever', async () => {
    const database = await createDatabase();
    try {
      const store = { kind: 'postgres', mode: 'table', url: database.url };
      await using chaos = await startChaos({ store, workers: 2, tasks: 3, waitMs: 5_000 });
      await chaos.works(300);
      const wrong = await chaos.finish({ fences: true, exclusion: true });
      const lines = chaos.lines();
      const refused = lines.filter(({ verb, code }) => verb === 'acquire' && code === 'BUSY');
      expect([...wrong, ...refused]).toEqual([]);
    } finally {
      await database.drop();
    }
  });
});
