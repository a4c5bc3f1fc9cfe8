/** The depot's effects with nothing that keeps them from happening again: what the wrong ones do. */
import type { SqlSession } from 'turngate/contract';
import type { DepotHold } from '../../depot/depot.ts';
import { Refused } from '../payment.ts';

/** Units from the shelf to the reserved ones. */
export async function reserveUnits(
  sql: SqlSession,
  { skuId, units }: Pick<DepotHold, 'skuId' | 'units'>,
): Promise<void> {
  const { affectedRows } = await sql.query(
    `UPDATE shop_depot SET units_left = units_left - $2, units_held = units_held + $2
     WHERE sku_id = $1 AND units_left >= $2`,
    [skuId, units],
  );
  if (affectedRows === 0) throw new Refused('OUT_OF_STOCK');
}

/** Reserved units to the sold ones, or back to the shelf. */
export async function endReservation(
  sql: SqlSession,
  { skuId, units }: Pick<DepotHold, 'skuId' | 'units'>,
  op: 'confirm' | 'cancel',
): Promise<void> {
  const to = op === 'confirm' ? 'units_sold' : 'units_left';
  await sql.query(
    `UPDATE shop_depot SET units_held = units_held - $2, ${to} = ${to} + $2 WHERE sku_id = $1`,
    [skuId, units],
  );
}
