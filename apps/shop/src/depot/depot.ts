/**
 * The depot: units of articles kept by another service, with a database of its own. A checkout holds
 * units, then takes them or gives them back. At every commit: supplied = left + held + sold.
 */
import { type Gate, type Operation, refuse } from 'turngate';
import type { SqlDatabase, SqlSession } from 'turngate/contract';
import { createBarrier, localParticipant, type Participant } from 'turngate/saga';
import { nowMs, type Tx } from '../trade/store.ts';

/** More units for the depot. */
export interface Supply {
  readonly skuId: string;
  readonly supplyNo: string;
  readonly units: number;
}

/** What the stock branch of a checkout is told. */
export interface DepotHold {
  readonly checkoutNo: string;
  readonly skuId: string;
  readonly units: number;
}

/** Units of one article in the depot. */
export interface DepotStock {
  readonly skuId: string;
  readonly left: number;
  readonly held: number;
  readonly sold: number;
}

const yearsMs = 3_650 * 86_400_000;

/** Declares the operation that supplies it. */
export function supplyOperation(
  gate: Gate<Tx>,
  database: SqlDatabase<Tx>,
): Operation<Tx, Supply, Supply> {
  return gate.operation({
    name: 'depot.supply',
    scope: ({ skuId }: Supply) => `sku:${skuId}`,
    key: ({ supplyNo }: Supply) => supplyNo,
    keySource: 'supplyNo in the body, per article; no header needed',
    retentionMs: yearsMs,
    run: (supply, { tx }) => addSupply(supply, database.session(tx)),
  });
}

/** The depot's side of a checkout, behind its barrier. */
export function depotParticipant(database: SqlDatabase<Tx>): Participant<DepotHold> {
  return localParticipant<DepotHold>(database as SqlDatabase, createBarrier(), {
    try: (sql, hold, { gid }) => holdUnits(sql, gid, hold),
    confirm: (sql, _hold, { gid }) =>
      endHold(sql, gid, 'CONFIRMED', 'units_held = units_held - $2, units_sold = units_sold + $2'),
    cancel: (sql, _hold, { gid }) =>
      endHold(sql, gid, 'CANCELLED', 'units_held = units_held - $2, units_left = units_left + $2'),
  });
}

/** Reads one article; one that was never supplied has nothing. */
export async function readDepot(database: SqlDatabase<Tx>, skuId: string): Promise<DepotStock> {
  const { rows } = await database.query(
    'SELECT units_left, units_held, units_sold FROM shop_depot WHERE sku_id = $1',
    [skuId],
  );
  const [row] = rows;
  return {
    skuId,
    left: Number(row?.['units_left'] ?? 0),
    held: Number(row?.['units_held'] ?? 0),
    sold: Number(row?.['units_sold'] ?? 0),
  };
}

async function addSupply(supply: Supply, sql: SqlSession): Promise<Supply> {
  const { skuId, supplyNo, units } = supply;
  const onConflict =
    sql.dialect === 'mysql'
      ? 'ON DUPLICATE KEY UPDATE units_left = units_left + VALUES(units_left)'
      : 'ON CONFLICT (sku_id) DO UPDATE SET units_left = shop_depot.units_left + excluded.units_left';
  await sql.query(
    `INSERT INTO shop_depot (sku_id, units_left, units_held, units_sold) VALUES ($1, $2, 0, 0)
     ${onConflict}`,
    [skuId, units],
  );
  await sql.query(
    `INSERT INTO shop_depot_supply (sku_id, supply_no, units, at_ms) VALUES ($1, $2, $3, ${nowMs(sql)})`,
    [skuId, supplyNo, units],
  );
  return supply;
}

/** The guard in the statement decides, not a read. */
async function holdUnits(sql: SqlSession, gid: string, hold: DepotHold): Promise<null> {
  const { checkoutNo, skuId, units } = hold;
  const { affectedRows } = await sql.query(
    `UPDATE shop_depot SET units_left = units_left - $2, units_held = units_held + $2
     WHERE sku_id = $1 AND units_left >= $2`,
    [skuId, units],
  );
  if (affectedRows === 0)
    throw refuse('OUT_OF_STOCK', `the depot has fewer than ${units} of ${skuId}`);
  await sql.query(
    `INSERT INTO shop_depot_hold (gid, checkout_no, sku_id, units, state) VALUES ($1, $2, $3, $4, 'HELD')`,
    [gid, checkoutNo, skuId, units],
  );
  return null;
}

/** Runs once per gid, and only after its try: the barrier sees to both. */
async function endHold(
  sql: SqlSession,
  gid: string,
  state: 'CONFIRMED' | 'CANCELLED',
  change: string,
): Promise<void> {
  const { rows } = await sql.query('SELECT sku_id, units FROM shop_depot_hold WHERE gid = $1', [
    gid,
  ]);
  const [row] = rows;
  await sql.query(`UPDATE shop_depot SET ${change} WHERE sku_id = $1`, [
    String(row?.['sku_id']),
    Number(row?.['units']),
  ]);
  await sql.query('UPDATE shop_depot_hold SET state = $2 WHERE gid = $1', [gid, state]);
}
