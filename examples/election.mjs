// One leader among several servers: work that must run once, like a scheduler. The leader resigns on
// shutdown, and the next one takes over at once, with a higher fence.
import assert from 'node:assert/strict';
import { createGate } from 'turngate';
import { migrate, postgres, postgresLocks } from 'turngate/postgres';
import { withDatabase } from './support/database.mjs';

await withDatabase(async (pool) => {
  await migrate(pool);
  await pool.query('CREATE TABLE tick (server text, fence bigint)');

  const stand = (server) => {
    const gate = createGate({ records: postgres(pool), locks: postgresLocks(pool) });
    return gate.elect('scheduler', {
      leaseMs: 2_000,
      onError: (error) => console.error(server, error),
      async onElected({ signal, fence, assertLeading }) {
        while (!signal.aborted) {
          assertLeading(); // Synchronous; before each write.
          await pool.query('INSERT INTO tick VALUES ($1, $2)', [server, String(fence)]);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      },
    });
  };
  const servers = { a: stand('a'), b: stand('b') };

  const ticks = async () => (await pool.query('SELECT server, fence FROM tick')).rows;
  const until = async (condition) => {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  await until(async () => (await ticks()).length >= 3);
  const first = (await ticks())[0].server;
  const second = first === 'a' ? 'b' : 'a';
  assert.deepEqual([...new Set((await ticks()).map(({ server }) => server))], [first]);
  assert.equal(servers[second].leading, false);
  const { fence } = await servers[second].leader(); // Anybody may ask.

  await servers[first].resign(); // Waits for the loop to end, then gives the office up.
  await until(async () => (await ticks()).some(({ server }) => server === second));
  const last = (await ticks()).at(-1);
  assert.equal(last.server, second);
  assert.ok(BigInt(last.fence) > fence);
  await servers[second].resign();
  console.log('one leader at a time; after a resignation the other one, with a higher fence');
});
