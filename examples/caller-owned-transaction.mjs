// A message consumer that owns its transaction: the operation joins it. Rolled back, the message can
// be delivered again and runs again; committed, a redelivery does nothing.
import assert from 'node:assert/strict';
import { createGate } from 'turngate';
import { migrate, postgres } from 'turngate/postgres';
import { withDatabase } from './support/database.mjs';

await withDatabase(async (pool) => {
  await migrate(pool);
  await pool.query('CREATE TABLE balance (account text PRIMARY KEY, minor bigint NOT NULL)');
  await pool.query("INSERT INTO balance VALUES ('ann', 0)");
  const gate = createGate({ records: postgres(pool) });

  const credit = gate.operation({
    name: 'balance.credit',
    key: ({ messageId }) => messageId,
    async run({ account, minor }, { tx }) {
      const text = 'UPDATE balance SET minor = minor + $2 WHERE account = $1 RETURNING minor';
      const { rows } = await tx.query(text, [account, minor]);
      return { minor: Number(rows[0].minor) };
    },
  });

  async function deliver(message, end) {
    const client = await pool.connect();
    try {
      await client.query('BEGIN'); // READ COMMITTED, and credit.within comes first.
      const outcome = await credit.within(client, message);
      await client.query(end);
      return outcome;
    } finally {
      client.release();
    }
  }
  const balance = async () => Number((await pool.query('SELECT minor FROM balance')).rows[0].minor);

  const message = { messageId: 'm-1', account: 'ann', minor: 500 };
  assert.equal((await deliver(message, 'ROLLBACK')).replayed, false);
  assert.equal(await balance(), 0);

  assert.equal((await deliver(message, 'COMMIT')).replayed, false);
  assert.equal(await balance(), 500);

  const again = await deliver(message, 'COMMIT');
  assert.equal(again.replayed, true);
  assert.deepEqual(again.value, { minor: 500 });
  assert.equal(await balance(), 500);
  console.log('rolled back: ran again; committed: 1 credit for 2 deliveries');
});
