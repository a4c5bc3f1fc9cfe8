/** Money and units of a checkout in two services, each call a transaction, none that is recorded. */
import { randomUUID } from 'node:crypto';
import type { SqlDatabase, SqlSession } from 'turngate/contract';
import { addToBalance, takeFromBalance } from '../../../trade/accounts.ts';
import type { CheckoutRequest } from '../../../trade/checkout.ts';
import { nowMs, type Tx } from '../../../trade/store.ts';
import type { Trial } from '../../scenario.ts';
import { endReservation, reserveUnits } from '../bare-depot.ts';

type End = 'confirm' | 'cancel';
const stateOf = { confirm: 'CONFIRMED', cancel: 'CANCELLED' } as const;

/** Reserves both, confirms both; what goes wrong in between is undone where it is caught. */
export async function checkOutBare(
  database: SqlDatabase<Tx>,
  request: CheckoutRequest,
  trial: Trial,
): Promise<void> {
  const gid = randomUUID();
  await database.transaction((sql) => holdMoney(sql, gid, request));
  try {
    await database.transaction((sql) => holdUnits(sql, gid, request));
  } catch (error) {
    await trial.at('refused');
    await database.transaction((sql) => endMoney(sql, gid, request, 'cancel'));
    throw error;
  }
  await trial.at('reserved');
  await database.transaction((sql) => endMoney(sql, gid, request, 'confirm'));
  await trial.at('half-confirmed');
  await database.transaction(async (sql) => {
    await endReservation(sql, request, 'confirm');
    await sql.query(`UPDATE shop_depot_hold SET state = 'CONFIRMED' WHERE gid = $1`, [gid]);
  });
}

async function holdMoney(
  sql: SqlSession,
  gid: string,
  { userId, checkoutNo, skuId, units }: CheckoutRequest,
): Promise<void> {
  const { rows } = await sql.query('SELECT price_minor FROM shop_sku WHERE sku_id = $1', [skuId]);
  const amountMinor = Number(rows[0]?.['price_minor']) * units;
  await takeFromBalance(sql, userId, amountMinor);
  await sql.query(
    `INSERT INTO shop_checkout (gid, checkout_no, user_id, amount_minor, state, created_at_ms)
     VALUES ($1, $2, $3, $4, 'HELD', ${nowMs(sql)})`,
    [gid, checkoutNo, userId, amountMinor],
  );
}

async function holdUnits(
  sql: SqlSession,
  gid: string,
  { checkoutNo, skuId, units }: CheckoutRequest,
): Promise<void> {
  await reserveUnits(sql, { skuId, units });
  await sql.query(
    `INSERT INTO shop_depot_hold (gid, checkout_no, sku_id, units, state)
     VALUES ($1, $2, $3, $4, 'HELD')`,
    [gid, checkoutNo, skuId, units],
  );
}

async function endMoney(
  sql: SqlSession,
  gid: string,
  { userId }: CheckoutRequest,
  end: End,
): Promise<void> {
  const { rows } = await sql.query('SELECT amount_minor FROM shop_checkout WHERE gid = $1', [gid]);
  if (end === 'cancel') await addToBalance(sql, userId, Number(rows[0]?.['amount_minor']));
  await sql.query('UPDATE shop_checkout SET state = $2 WHERE gid = $1', [gid, stateOf[end]]);
}
