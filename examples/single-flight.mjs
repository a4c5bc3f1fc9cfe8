// A popular key expires and everybody misses the cache at once: one server loads, the others wait for
// its value, or take the stale one meanwhile. The cache is yours: here a table, as well Redis.
import assert from 'node:assert/strict';
import { createGate, singleFlight } from 'turngate';
import { migrate, postgres, postgresLocks } from 'turngate/postgres';
import { withDatabase } from './support/database.mjs';

await withDatabase(async (pool) => {
  await migrate(pool);
  await pool.query(
    'CREATE TABLE cache (key text PRIMARY KEY, entry jsonb, keep_until timestamptz)',
  );
  const cache = {
    async get(key) {
      const text = 'SELECT entry FROM cache WHERE key = $1 AND keep_until > now()';
      return (await pool.query(text, [key])).rows[0]?.entry;
    },
    async set(key, entry, { keepMs }) {
      const text = `INSERT INTO cache VALUES ($1, $2, now() + $3 * interval '1 ms')
        ON CONFLICT (key) DO UPDATE SET entry = excluded.entry, keep_until = excluded.keep_until`;
      await pool.query(text, [key, entry, keepMs]);
    },
  };

  let loads = 0;
  const open = (options) => {
    const gate = createGate({ records: postgres(pool), locks: postgresLocks(pool) });
    return singleFlight(gate, {
      name: 'price',
      cache,
      async load(sku) {
        loads++;
        await new Promise((resolve) => setTimeout(resolve, 50)); // A slow source.
        return { sku, price: 100 * loads };
      },
      ...options,
    });
  };

  // Two servers, 400 readers, one load.
  const options = { freshMs: 60_000, staleMs: 60_000, waitMs: 60_000, whileLoading: 'stale' };
  const [here, there] = [open(options), open(options)];
  const readAll = () =>
    Promise.all(Array.from({ length: 400 }, (_, i) => (i % 2 ? here : there).get('sku-1')));
  for (const { price } of await readAll()) assert.equal(price, 100);
  assert.equal(loads, 1);

  // No longer fresh: everybody gets the stale price at once, and one load brings the new one.
  await pool.query(`UPDATE cache SET entry = jsonb_set(entry, '{freshUntilMs}', '0')`);
  for (const { price } of await readAll()) assert.ok(price === 100 || price === 200);
  while ((await here.get('sku-1')).price !== 200) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }

  // A source that is too slow: the fallback instead of an error.
  const slow = open({
    name: 'slow',
    freshMs: 1_000,
    waitMs: 20,
    fallback: () => ({ price: null }),
  });
  assert.equal((await slow.get('sku-2')).price, null);
  while ((await cache.get('sku-2')) === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 10)); // The load itself goes on and is kept.
  }
  console.log('400 readers, one load; the stale price while the next load ran; a fallback in time');
});
