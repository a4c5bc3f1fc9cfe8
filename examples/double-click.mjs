// One impatient user, 50 identical requests over two servers: the handler runs once and everybody
// gets the first result. A different payload under the same key is refused.
import assert from 'node:assert/strict';
import { createGate, isTurngateError } from 'turngate';
import { migrate, postgres } from 'turngate/postgres';
import { withDatabase } from './support/database.mjs';

await withDatabase(async (pool) => {
  await migrate(pool);
  await pool.query('CREATE TABLE shop_order (order_no text, user_id text, quantity int)');
  let runs = 0;

  // Two gates stand for two servers: they share the database and nothing else.
  const servers = [1, 2].map(() => {
    const gate = createGate({ records: postgres(pool) });
    return gate.operation({
      name: 'order.create',
      scope: ({ userId }) => `user:${userId}`,
      key: ({ clientKey }) => clientKey,
      fingerprint: ({ userId, quantity }) => ({ userId, quantity }),
      async run({ userId, quantity }, { tx }) {
        const orderNo = `A-${++runs}`;
        await tx.query('INSERT INTO shop_order VALUES ($1, $2, $3)', [orderNo, userId, quantity]);
        return { orderNo };
      },
    });
  });

  const click = { userId: 'ann', clientKey: 'checkout-7', quantity: 1 };
  const outcomes = await Promise.all(
    Array.from({ length: 50 }, (_, i) => servers[i % servers.length](click)),
  );

  const { rows } = await pool.query('SELECT order_no FROM shop_order');
  assert.equal(runs, 1);
  assert.deepEqual(rows, [{ order_no: 'A-1' }]);
  assert.equal(outcomes.filter(({ replayed }) => !replayed).length, 1);
  for (const { value } of outcomes) assert.deepEqual(value, { orderNo: 'A-1' });

  await assert.rejects(servers[0]({ ...click, quantity: 2 }), (error) =>
    isTurngateError(error, 'IDEMPOTENCY_KEY_REUSED'),
  );
  console.log('50 clicks, 1 order; another quantity under the same key was refused');
});
