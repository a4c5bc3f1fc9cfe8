// Locks between servers: one at a time, an answer instead of a hang, and a fence that makes the
// database refuse the late write of a holder who lost the lock without noticing.
import assert from 'node:assert/strict';
import { createGate, isTurngateError } from 'turngate';
import { migrate, postgres, postgresLocks } from 'turngate/postgres';
import { withDatabase } from './support/database.mjs';

await withDatabase(async (pool) => {
  await migrate(pool);
  const open = () => createGate({ records: postgres(pool), locks: postgresLocks(pool) });
  const [here, there] = [open(), open()]; // Two servers.

  // One at a time.
  let inside = 0;
  let insideMax = 0;
  const work = async () => {
    insideMax = Math.max(insideMax, ++inside);
    await new Promise((resolve) => setTimeout(resolve, 5));
    inside--;
  };
  const options = { waitMs: 30_000 };
  await Promise.all(
    Array.from({ length: 20 }, (_, i) => (i % 2 ? here : there).lock('report', options, work)),
  );
  assert.equal(insideMax, 1);

  // By hand: `await using lock = …` where the language has it, try and finally everywhere else.
  const lock = await here.acquire('report');
  try {
    lock.assertHeld(); // Synchronous; before each write.
    await assert.rejects(there.acquire('report', { waitMs: 0 }), (error) =>
      isTurngateError(error, 'BUSY'),
    );
  } finally {
    assert.equal(await lock.release(), 'released');
  }
  assert.equal(lock.isHeld(), false);

  await refuseTheLateWrite(pool, here, there);
  console.log('20 turns one at a time; busy told at once; the late write was refused');
});

/** The mark lives where the data lives: enter raises it before the first read, each write checks. */
async function refuseTheLateWrite(pool, here, there) {
  await pool.query('CREATE TABLE report (id text PRIMARY KEY, total int, fence bigint)');
  await pool.query("INSERT INTO report VALUES ('r1', 0, 0)");
  const enter = async ({ fence }) => {
    const text = "UPDATE report SET fence = $1 WHERE id = 'r1' AND fence < $1 RETURNING total";
    const { rows } = await pool.query(text, [String(fence)]);
    assert.equal(rows.length, 1, 'a newer holder has entered');
    return rows[0].total;
  };
  const write = async ({ fence }, total) => {
    const text = "UPDATE report SET total = $2 WHERE id = 'r1' AND fence = $1";
    return (await pool.query(text, [String(fence), total])).rowCount === 1;
  };

  // Without renewal the lease ends under a frozen process; the next one is let in.
  const frozen = await here.acquire('r1', { leaseMs: 200, renew: false });
  const seen = await enter(frozen);
  const next = await there.acquire('r1', { waitMs: 5_000 });
  assert.ok(next.fence > frozen.fence);
  assert.equal(await write(next, (await enter(next)) + 1), true);

  // The frozen one wakes up. Its write touches nothing.
  assert.equal(frozen.isHeld(), false);
  assert.equal(await write(frozen, seen + 100), false);
  await next.release();
}
