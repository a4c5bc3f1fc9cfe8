/** Draws the last units together, so that buyers of several do not meet fragments. */
import type { SqlDatabase } from '../contract/sql-session.ts';
import { gather } from './segments.ts';

const unitsPerSegment = 8;

/**
 * Spreads what is left evenly over as many segments as still make sense: about eight units each, one
 * segment for the last. Run it from a job now and then; it changes no sum.
 *
 * @returns how many segments hold units afterwards
 */
export async function rebalance(database: SqlDatabase, item: string): Promise<number> {
  return await database.transaction(async (sql) => {
    const { left, generation } = await gather(sql, item, 0);
    const { rows } = await sql.query('SELECT segments FROM turngate_stock WHERE item = $1', [item]);
    const segments = Number(rows[0]?.['segments'] ?? 0);
    const live = Math.max(1, Math.min(segments, Math.ceil(left / unitsPerSegment)));
    const share = Math.floor(left / live);
    for (let segment = 0; segment < segments; segment++) {
      const units = segment < live ? share + (segment < left % live ? 1 : 0) : 0;
      await sql.query(
        `UPDATE turngate_stock_segment SET units_left = $3
         WHERE item = $1 AND segment = $2 AND units_left <> $3`,
        [item, segment, units],
      );
    }
    await sql.query('UPDATE turngate_stock SET generation = $2 WHERE item = $1', [
      item,
      generation + 1,
    ]);
    return live;
  });
}
