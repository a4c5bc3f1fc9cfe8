/** How many units one holder may have of an item: counted by one guarded statement. */
import type { SqlAnswer, SqlSession, SqlStep } from '../contract/sql-session.ts';
import { sqlUpsert } from '../core/sql-text.ts';

const unitsMax = 1_000_000_000;

/** What is counted. */
export interface Counted {
  readonly item: string;
  readonly holder: string;
  readonly units: number;
  readonly quota?: number;
}

/**
 * Undefined when the quota allows it and counts it; else what is used already.
 *
 * @param counted the answer to {@link countStep}, if that was sent
 */
export async function overQuota(
  sql: SqlSession,
  wish: Counted,
  counted?: SqlAnswer,
): Promise<number | undefined> {
  const { item, holder } = wish;
  const allowed = counted === undefined ? await countNow(sql, wish) : counted.rows.length > 0;
  if (allowed) return undefined;
  const { rows } = await sql.query(
    'SELECT units_used FROM turngate_stock_quota WHERE item = $1 AND holder = $2',
    [item, holder],
  );
  return Number(rows[0]?.['units_used'] ?? 0);
}

async function countNow(sql: SqlSession, wish: Counted): Promise<boolean> {
  const step = countStep(wish);
  if (step === undefined) return false;
  if (sql.dialect === 'mysql') return await countInSteps(sql, wish);
  return (await sql.query(step.text, step.values)).rows.length > 0;
}

/** Counts where the quota allows it, and returns a row then. Undefined: it never could. Not for MySQL. */
export function countStep({ item, holder, units, quota = unitsMax }: Counted): SqlStep | undefined {
  if (units > quota) return undefined;
  return {
    text: `INSERT INTO turngate_stock_quota AS q (item, holder, units_used) VALUES ($1, $2, $3)
     ON CONFLICT (item, holder) DO UPDATE SET units_used = q.units_used + $3
     WHERE q.units_used + $3 <= $4 RETURNING units_used`,
    values: [item, holder, units, quota],
  };
}

async function countInSteps(
  sql: SqlSession,
  { item, holder, units, quota = unitsMax }: Counted,
): Promise<boolean> {
  await sql.query(
    `INSERT INTO turngate_stock_quota (item, holder, units_used) VALUES ($1, $2, 0)
     ${sqlUpsert(sql.dialect, ['item', 'holder'], [])}`,
    [item, holder],
  );
  const { affectedRows } = await sql.query(
    `UPDATE turngate_stock_quota SET units_used = units_used + $3
     WHERE item = $1 AND holder = $2 AND units_used + $3 <= $4`,
    [item, holder, units, quota],
  );
  return affectedRows > 0;
}
