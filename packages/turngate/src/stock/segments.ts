/** Taking units out of segments: one that nobody else holds, or all of them together. */
import type { SqlAnswer, SqlSession, SqlStep } from '../contract/sql-session.ts';

/** Units taken from one segment. */
export interface Part {
  readonly segment: number;
  readonly units: number;
}

/**
 * Picks one segment with enough units without ever waiting: the holder's own first, then upwards,
 * then from the bottom. Undefined: none is free and large enough.
 */
export async function pickSegment(
  sql: SqlSession,
  item: string,
  own: number,
  units: number,
): Promise<Part | undefined> {
  // Three plain range reads instead of one sorted by distance: a sort would lock what it sorts.
  const skipLocked = sql.dialect === 'sqlite' ? '' : 'FOR UPDATE SKIP LOCKED';
  for (const range of ['segment = $3', 'segment > $3', 'segment < $3']) {
    const { rows } = await sql.query(
      `SELECT segment FROM turngate_stock_segment
       WHERE item = $1 AND units_left >= $2 AND ${range} ORDER BY segment LIMIT 1 ${skipLocked}`,
      [item, units, own],
    );
    const [row] = rows;
    if (row !== undefined) return { segment: Number(row['segment']), units };
  }
  return undefined;
}

/**
 * The same as one step, where the database returns what it wrote: picks a segment, takes the units and
 * notes the part, unless the reservation is somebody else's. For {@link takenPart}.
 */
export function takeStep(
  { reservationId, token }: { readonly reservationId: string; readonly token: string },
  { item, own, units }: { readonly item: string; readonly own: number; readonly units: number },
): SqlStep {
  return {
    text: `WITH picked AS (
       SELECT segment FROM turngate_stock_segment
       WHERE item = $1 AND units_left >= $2 AND EXISTS (
         SELECT 1 FROM turngate_reservation WHERE reservation_id = $4 AND token = $5)
       ORDER BY (segment < $3), segment LIMIT 1 FOR UPDATE SKIP LOCKED),
     taken AS (
       UPDATE turngate_stock_segment AS s SET units_left = s.units_left - $2 FROM picked
       WHERE s.item = $1 AND s.segment = picked.segment RETURNING s.segment)
     INSERT INTO turngate_reservation_part (reservation_id, segment, units)
     SELECT $4, segment, $2 FROM taken RETURNING segment`,
    values: [item, units, own, reservationId, token],
  };
}

/** Undefined: no segment was free and large enough. */
export function takenPart(answer: SqlAnswer | undefined, units: number): Part | undefined {
  const [row] = answer?.rows ?? [];
  return row === undefined ? undefined : { segment: Number(row[0]), units };
}

/**
 * PostgreSQL keeps the lock on a row that was large enough in the snapshot and no longer is. Whoever
 * goes on to another segment, or to all of them, has to let go of it first.
 */
export const pickMark: SqlStep = { text: 'SAVEPOINT turngate_stock_pick', values: [] };

async function letGo(sql: SqlSession): Promise<void> {
  if (sql.dialect === 'postgres') await sql.query('ROLLBACK TO SAVEPOINT turngate_stock_pick', []);
}

const waitsMax = 3;

/**
 * Waits for one segment that somebody else is taking from, when each that is large enough is: whoever
 * gathered now would lock all of them, the next would find all locked and gather too, and so on for
 * ever. The segment that comes back is locked, and no other. Undefined: none looks large enough. Behind
 * {@link pickMark}.
 */
export async function awaitSegment(
  sql: SqlSession,
  item: string,
  own: number,
  units: number,
): Promise<Part | undefined> {
  const forUpdate = sql.dialect === 'sqlite' ? '' : 'FOR UPDATE';
  for (let waits = 0; waits < waitsMax; waits++) {
    await letGo(sql);
    const seen = await sql.query(
      `SELECT segment FROM turngate_stock_segment WHERE item = $1 AND units_left >= $2
       ORDER BY (segment < $3), segment LIMIT 1`,
      [item, units, own],
    );
    if (seen.rows[0] === undefined) return undefined;
    const segment = Number(seen.rows[0]['segment']);
    const { rows } = await sql.query(
      `SELECT segment FROM turngate_stock_segment
       WHERE item = $1 AND segment = $2 AND units_left >= $3 ${forUpdate}`,
      [item, segment, units],
    );
    if (rows.length > 0) return { segment, units };
  }
  await letGo(sql);
  return undefined;
}

/** What all segments hold, and the counter that grows when units come back. */
export interface Gathered {
  readonly left: number;
  readonly generation: number;
  /** How the wanted units are taken; undefined when there are not enough. */
  readonly parts: readonly Part[] | undefined;
}

/**
 * Locks the item's row, then all its segments in order, and adds them up: only this sum may say that
 * something is sold out. Whoever gathers waits for others; nobody who holds a segment waits for it.
 */
export async function gather(sql: SqlSession, item: string, units: number): Promise<Gathered> {
  const forUpdate = sql.dialect === 'sqlite' ? '' : 'FOR UPDATE';
  const head = await sql.query(
    `SELECT generation FROM turngate_stock WHERE item = $1 ${forUpdate}`,
    [item],
  );
  const { rows } = await sql.query(
    `SELECT segment, units_left FROM turngate_stock_segment
     WHERE item = $1 ORDER BY segment ${forUpdate}`,
    [item],
  );
  let left = 0;
  let wanted = units;
  const parts: Part[] = [];
  for (const row of rows) {
    const here = Number(row['units_left']);
    left += here;
    const taken = Math.min(here, wanted);
    if (taken > 0) parts.push({ segment: Number(row['segment']), units: taken });
    wanted -= taken;
  }
  const generation = Number(head.rows[0]?.['generation'] ?? 0);
  return { left, generation, parts: wanted === 0 ? parts : undefined };
}

/** Moves units out of (negative: back into) segments, in segment order. */
export async function moveUnits(
  sql: SqlSession,
  item: string,
  parts: readonly Part[],
  sign: 1 | -1,
): Promise<void> {
  for (const { segment, units } of parts.toSorted((a, b) => a.segment - b.segment)) {
    await sql.query(
      `UPDATE turngate_stock_segment SET units_left = units_left - $3
       WHERE item = $1 AND segment = $2`,
      [item, segment, sign * units],
    );
  }
}
