// The program of the README. Run it: node examples/readme.mjs
import assert from 'node:assert/strict';
import { openDatabase } from './support/database.mjs';

const { pool, close } = await openDatabase();
await pool.query('CREATE TABLE payment (order_no text NOT NULL, amount_minor bigint NOT NULL)');

// #region readme
import { createGate } from 'turngate';
import { migrate, postgres } from 'turngate/postgres';

await migrate(pool); // pool: your pg.Pool, a postgres.js sql, or a PGlite database
const gate = createGate({ records: postgres(pool) });

const payOrder = gate.operation({
  name: 'order.pay',
  key: ({ orderNo }) => orderNo,
  async run({ orderNo, amountMinor }, { tx }) {
    await tx.query('INSERT INTO payment VALUES ($1, $2)', [orderNo, amountMinor]);
    return { orderNo, status: 'PAID' };
  },
});

const calls = Array.from({ length: 100 }, () => payOrder({ orderNo: 'A-1', amountMinor: 4_200 }));
const outcomes = await Promise.all(calls);
const { rows } = await pool.query('SELECT count(*)::int AS payments FROM payment');
console.log(rows[0].payments, outcomes.filter(({ replayed }) => replayed).length); // 1 99
// #endregion

assert.equal(rows[0].payments, 1);
assert.equal(outcomes.filter(({ replayed }) => replayed).length, 99);
for (const { value } of outcomes) assert.deepEqual(value, { orderNo: 'A-1', status: 'PAID' });
await close();
