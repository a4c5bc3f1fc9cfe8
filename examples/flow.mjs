// A state machine over a row: one guarded statement moves it; the answer says what was found.
import assert from 'node:assert/strict';
import { defineFlow } from 'turngate';
import { migrate, postgresSession } from 'turngate/postgres';
import { withDatabase } from './support/database.mjs';

const orderFlow = defineFlow(
  {
    name: 'order',
    table: 'shop_order',
    states: ['PENDING', 'PAID', 'SHIPPED', 'CANCELLED'],
    transitions: {
      pay: { from: ['PENDING'], to: 'PAID' },
      ship: { from: ['PAID'], to: 'SHIPPED' },
      cancel: { from: ['PENDING', 'PAID'], to: 'CANCELLED' },
    },
  },
  postgresSession,
);

await withDatabase(async (pool) => {
  await migrate(pool);
  await pool.query(
    'CREATE TABLE shop_order (id text PRIMARY KEY, status text NOT NULL, version bigint NOT NULL)',
  );
  await pool.query("INSERT INTO shop_order VALUES ('A-1', 'PENDING', 0)");

  async function fire(event, id = 'A-1') {
    const tx = await pool.connect();
    try {
      await tx.query('BEGIN');
      const result = await orderFlow.fire(event, { tx, id });
      await tx.query('COMMIT');
      return result;
    } finally {
      tx.release();
    }
  }

  // Ten at once: one moves the row, nine find it moved.
  const kinds = (await Promise.all(Array.from({ length: 10 }, () => fire('pay')))).map(
    ({ kind }) => kind,
  );
  assert.equal(kinds.filter((kind) => kind === 'applied').length, 1);
  assert.equal(kinds.filter((kind) => kind === 'already').length, 9);

  assert.equal((await fire('ship')).kind, 'applied');
  assert.deepEqual(await fire('pay'), { kind: 'already', state: 'SHIPPED' }); // Past it.
  assert.deepEqual(await fire('cancel'), { kind: 'refused', state: 'SHIPPED' });
  assert.deepEqual(await fire('pay', 'A-2'), { kind: 'missing' });

  const { rows } = await pool.query(
    'SELECT event, from_state, to_state FROM turngate_transition ORDER BY version',
  );
  assert.deepEqual(rows, [
    { event: 'pay', from_state: 'PENDING', to_state: 'PAID' },
    { event: 'ship', from_state: 'PAID', to_state: 'SHIPPED' },
  ]);
  assert.match(orderFlow.mermaid(), /PENDING --> PAID: pay/);
  console.log('10 pay at once: 1 applied, 9 already; history has one line per move');
});
