/** Statements the wrong implementations share, so that each of their files shows only its flaw. */
import type { Pool, PoolClient } from 'pg';
import { type Answer, type PayRequest, Refused, type Trial } from '../payment.ts';

type Queryable = Pick<PoolClient, 'query'>;

export interface OrderRow {
  readonly status: string;
  readonly skuId: string;
}

export async function readOrder(db: Queryable, orderNo: string): Promise<OrderRow> {
  const { rows } = await db.query(
    'SELECT status, sku_id AS "skuId" FROM lab_order WHERE order_no = $1',
    [orderNo],
  );
  const [row] = rows as OrderRow[];
  if (row === undefined) throw new Error(`there is no order ${orderNo}`);
  return row;
}

/** The answer the state of an order asks for; undefined when it can still be paid. */
export function answerByState({ status }: OrderRow): Answer | undefined {
  if (status === 'created') return undefined;
  return status === 'paid' ? { kind: 'already' } : { kind: 'refused', why: `order is ${status}` };
}

export async function insertCharge(db: Queryable, request: PayRequest): Promise<void> {
  await db.query('INSERT INTO lab_charge (order_no, request_key) VALUES ($1, $2)', [
    request.orderNo,
    request.requestKey,
  ]);
}

/** Writes the state whatever it is by now. */
export async function overwriteState(db: Queryable, orderNo: string): Promise<void> {
  await db.query("UPDATE lab_order SET status = 'paid' WHERE order_no = $1", [orderNo]);
}

export async function readStock(db: Queryable, skuId: string): Promise<number> {
  const { rows } = await db.query('SELECT current FROM lab_sku WHERE id = $1', [skuId]);
  const stock = (rows as { current: number }[])[0]?.current ?? 0;
  if (stock < 1) throw new Refused('sold out');
  return stock;
}

/** What `sku.stock -= 1; save(sku)` sends: a number computed from an old read. */
export async function overwriteStock(db: Queryable, skuId: string, stock: number): Promise<void> {
  await db.query('UPDATE lab_sku SET current = $2 WHERE id = $1', [skuId, stock]);
}

/** The right way to take one unit: the row decides. */
export async function takeUnit(db: Queryable, orderNo: string): Promise<void> {
  const { rowCount } = await db.query(
    `UPDATE lab_sku SET current = current - 1
     WHERE id = (SELECT sku_id FROM lab_order WHERE order_no = $1) AND current >= 1`,
    [orderNo],
  );
  if (rowCount === 0) throw new Refused('sold out');
}

/** Business part of those whose flaw is only in the record: state and stock are guarded. */
export async function guardedSale(
  tx: Queryable,
  request: PayRequest,
  trial: Trial,
): Promise<Answer> {
  const { rowCount } = await tx.query(
    "UPDATE lab_order SET status = 'paid' WHERE order_no = $1 AND status = 'created'",
    [request.orderNo],
  );
  if (rowCount === 0) {
    const answer = answerByState(await readOrder(tx, request.orderNo));
    if (answer?.kind === 'already') return answer;
    throw new Refused(answer?.kind === 'refused' ? answer.why : 'order changed meanwhile');
  }
  await trial.work();
  await insertCharge(tx, request);
  await trial.at('after-charge');
  await takeUnit(tx, request.orderNo);
  return { kind: 'paid' };
}

export async function inTransaction<T>(
  pool: Pool,
  body: (tx: PoolClient) => Promise<T>,
): Promise<T> {
  const tx = await pool.connect();
  try {
    await tx.query('BEGIN');
    const result = await body(tx);
    await tx.query('COMMIT');
    return result;
  } catch (error) {
    await tx.query('ROLLBACK');
    throw error;
  } finally {
    tx.release();
  }
}
