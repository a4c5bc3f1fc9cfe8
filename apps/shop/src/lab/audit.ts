/** Counts what a storm has lost, from the tables alone and with SQL of its own. */
import type { Pool } from 'pg';
import { type Losses, noLosses } from './losses.ts';
import type { Answer } from './payment.ts';

/** An answer that reached the customer. */
export interface Told {
  readonly orderNo: string;
  readonly answer: Answer;
}

export interface OrderFact {
  readonly orderNo: string;
  readonly skuId: string;
  readonly status: string;
  /** The cancellation was confirmed to the customer. */
  readonly cancelled: boolean;
  readonly charges: number;
}

export interface SkuFact {
  readonly id: string;
  readonly initial: number;
  readonly current: number;
}

export interface Facts {
  readonly orders: readonly OrderFact[];
  readonly skus: readonly SkuFact[];
}

export interface AuditReport {
  readonly orders: number;
  readonly paid: number;
  readonly charges: number;
  readonly answers: Readonly<Record<Answer['kind'], number>>;
  readonly losses: Losses;
}

const orderFacts = `SELECT o.order_no AS "orderNo", o.sku_id AS "skuId", o.status,
    o.cancelled_at IS NOT NULL AS cancelled, count(c.id)::integer AS charges
  FROM lab_order o LEFT JOIN lab_charge c ON c.order_no = o.order_no
  WHERE o.cell = $1 GROUP BY o.order_no ORDER BY o.order_no`;

const skuFacts = 'SELECT id, initial, current FROM lab_sku WHERE cell = $1 ORDER BY id';

export async function audit(pool: Pool, cell: string, told: readonly Told[]): Promise<AuditReport> {
  const orders = (await pool.query(orderFacts, [cell])).rows as OrderFact[];
  const skus = (await pool.query(skuFacts, [cell])).rows as SkuFact[];
  const answers = { paid: 0, already: 0, refused: 0, failed: 0 };
  for (const { answer } of told) answers[answer.kind] += 1;
  return {
    orders: orders.length,
    paid: orders.filter(({ status }) => status === 'paid').length,
    charges: orders.reduce((sum, { charges }) => sum + charges, 0),
    answers,
    losses: countLosses({ orders, skus }, told),
  };
}

export function countLosses({ orders, skus }: Facts, told: readonly Told[]): Losses {
  const losses = { ...noLosses };
  const toldPaid = ordersTold(told, ['paid', 'already']);
  const toldNo = ordersTold(told, ['refused']);
  const soldOut = new Set<string>();
  for (const { id, initial, current } of skus) {
    const paid = orders.filter(({ skuId, status }) => skuId === id && status === 'paid').length;
    losses.oversold += Math.max(0, paid - initial);
    losses.stockDrift += Math.abs(initial - current - paid);
    if (paid >= initial) soldOut.add(id);
  }
  for (const { orderNo, skuId, status, cancelled, charges } of orders) {
    losses.extraCharges += Math.max(0, charges - 1);
    if (charges > 0 && cancelled) losses.chargedAfterCancel += 1;
    else if (charges > 0 && status !== 'paid') losses.chargedUnsold += 1;
    if (charges === 0 && status === 'paid') losses.uncharged += 1;
    if (toldPaid.has(orderNo) && (charges === 0 || status !== 'paid')) losses.falseSuccess += 1;
    const honestNo = toldNo.has(orderNo) && soldOut.has(skuId);
    if (status === 'created' && !honestNo) losses.ordersLost += 1;
  }
  return losses;
}

function ordersTold(told: readonly Told[], kinds: readonly Answer['kind'][]): Set<string> {
  return new Set(
    told.filter(({ answer }) => kinds.includes(answer.kind)).map(({ orderNo }) => orderNo),
  );
}
