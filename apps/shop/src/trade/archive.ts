/**
 * Finished orders move to the archive with their payment, attempts, refunds and returns, in one
 * transaction, and move back when somebody still writes to them. Ledger, points, notifications and the
 * library's records stay where they are.
 */
import type { SqlSession } from 'turngate/contract';
import { nowMs, type Store } from './store.ts';

/** What goes with an order, children first: foreign keys let them leave in this order only. */
const tables = [
  'shop_return',
  'shop_refund',
  'shop_payment_attempt',
  'shop_payment',
  'shop_order',
] as const;

const batchOrders = 100;
const dayMs = 86_400_000;

/** Ended, and nothing of it is still on its way. `o` is the order. */
const finished = `o.status IN ('COMPLETED', 'CLOSED', 'CANCELLED')
  AND NOT EXISTS (SELECT 1 FROM shop_refund r
    WHERE r.order_no = o.order_no AND r.status = 'PENDING')
  AND NOT EXISTS (SELECT 1 FROM shop_return b
    WHERE b.order_no = o.order_no AND b.status NOT IN ('DONE', 'REFUSED'))`;

/**
 * Archives one batch; returns how many orders were moved, 0 when none is left that can be. Any number of
 * nodes may do it at once. An order that somebody works on is left for another time.
 *
 * @param afterDays how long before now the order's time to pay must have ended
 */
export async function archiveBatch({ database }: Store, afterDays: number): Promise<number> {
  const { rows } = await database.query(
    `SELECT o.order_no FROM shop_order o
     WHERE ${finished} AND o.due_at_ms < ${nowMs(database)} - $1
     ORDER BY o.due_at_ms LIMIT ${batchOrders}`,
    [afterDays * dayMs],
  );
  if (rows.length === 0) return 0;
  return await database.transaction(async (sql) => {
    const locked = await lockWhole(sql, orderNosOf(rows));
    if (locked.length === 0) return 0;
    // Again, now that nothing can change any more.
    const { rows: ended } = await sql.query(
      `SELECT o.order_no FROM shop_order o WHERE o.order_no IN (${marks(locked)}) AND ${finished}`,
      locked,
    );
    const orderNos = orderNosOf(ended);
    if (orderNos.length > 0) for (const table of tables) await move(sql, table, 'in', orderNos);
    return orderNos.length;
  });
}

/**
 * Brings an order back that is in the archive, so that whoever writes to it finds it as it was. Nothing
 * happens when it is not there; when another transaction brings it back, waits for that.
 */
async function bringBack(sql: SqlSession, orderNo: string): Promise<void> {
  const { rows } = await sql.query(
    'SELECT order_no FROM shop_order_archive WHERE order_no = $1 FOR UPDATE',
    [orderNo],
  );
  if (rows.length === 0) return;
  for (const table of [...tables].reverse()) await move(sql, table, 'out', [orderNo]);
}

/** What `find` finds of an order, looking again once the order is back when it was in the archive. */
export async function findOrBringBack<Found>(
  sql: SqlSession,
  orderNo: string,
  find: () => Promise<Found | undefined>,
): Promise<Found | undefined> {
  const found = await find();
  if (found !== undefined) return found;
  await bringBack(sql, orderNo);
  return await find();
}

/** Brings back the order of an attempt to pay it. */
export async function bringBackByPayment(sql: SqlSession, paymentNo: string): Promise<void> {
  const text = 'SELECT order_no FROM shop_payment_attempt_archive WHERE payment_no = $1';
  for (const { order_no } of (await sql.query(text, [paymentNo])).rows) {
    await bringBack(sql, String(order_no));
  }
}

/**
 * Locks the orders of which every row is free. Nothing waits here: payments, refunds and callbacks lock
 * these rows in other orders, and waiting for one of them could be a deadlock.
 */
async function lockWhole(sql: SqlSession, wanted: readonly string[]): Promise<string[]> {
  let orderNos = [...wanted];
  for (const table of [...tables].reverse()) {
    if (orderNos.length === 0) break;
    const text = `SELECT order_no FROM ${table} WHERE order_no IN (${marks(orderNos)})`;
    const locked = countByOrder((await sql.query(`${text} FOR UPDATE SKIP LOCKED`, orderNos)).rows);
    const there = countByOrder((await sql.query(text, orderNos)).rows);
    const isWhole = (no: string): boolean => locked.get(no) === there.get(no);
    orderNos = orderNos.filter((no) => isWhole(no) && (table !== 'shop_order' || locked.has(no)));
  }
  return orderNos;
}

async function move(
  sql: SqlSession,
  table: (typeof tables)[number],
  way: 'in' | 'out',
  orderNos: readonly string[],
): Promise<void> {
  const [from, to] = way === 'in' ? [table, `${table}_archive`] : [`${table}_archive`, table];
  const where = `order_no IN (${marks(orderNos)})`;
  await sql.query(`INSERT INTO ${to} SELECT * FROM ${from} WHERE ${where}`, orderNos);
  // One by one: for a long list MySQL reads the whole table and waits for rows of other orders.
  for (const no of orderNos) await sql.query(`DELETE FROM ${from} WHERE order_no = $1`, [no]);
}

function orderNosOf(rows: readonly Record<string, unknown>[]): string[] {
  return rows.map(({ order_no }) => String(order_no));
}

function countByOrder(rows: readonly Record<string, unknown>[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const no of orderNosOf(rows)) counts.set(no, (counts.get(no) ?? 0) + 1);
  return counts;
}

function marks(values: readonly unknown[]): string {
  return values.map((_, i) => `$${i + 1}`).join(', ');
}
