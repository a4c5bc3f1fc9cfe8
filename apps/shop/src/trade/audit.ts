/** The books, recomputed from the tables: lists every broken invariant, trusts no counter. */
import type { Pool, PoolClient } from 'pg';

/** One broken invariant. */
export interface Violation {
  readonly rule: string;
  readonly id: string;
  readonly detail: string;
}

/** The state of the books. */
export interface Audit {
  readonly violations: readonly Violation[];
  readonly orders: { readonly byStatus: Record<string, number> };
  readonly stock: readonly {
    readonly skuId: string;
    readonly initial: number;
    readonly current: number;
    readonly soldUnits: number;
  }[];
}

/** Each query returns (id, detail) for every row that breaks its rule. */
const rules: Record<string, string> = {
  PAID_WITHOUT_PAYMENT: `SELECT o.order_no AS id, 'PAID, but no payment' AS detail
    FROM shop_order o LEFT JOIN shop_payment p USING (order_no)
    WHERE o.status = 'PAID' AND p.order_no IS NULL`,
  PAYMENT_WITHOUT_PAID_ORDER: `SELECT order_no AS id, 'payment, but order is ' || o.status AS detail
    FROM shop_payment JOIN shop_order o USING (order_no) WHERE o.status <> 'PAID'`,
  AMOUNT_MISMATCH: `SELECT order_no AS id, p.amount_minor || ' paid for ' || o.amount_minor AS detail
    FROM shop_payment p JOIN shop_order o USING (order_no) WHERE p.amount_minor <> o.amount_minor`,
  STOCK_NOT_CONSERVED: `SELECT s.sku_id AS id, 'initial ' || s.stock_initial || ' + restocked ' ||
      coalesce(r.units, 0) || ' - sold ' || coalesce(o.units, 0) || ' <> ' || s.stock_current AS detail
    FROM shop_sku s
    LEFT JOIN (SELECT sku_id, sum(units) AS units FROM shop_restock GROUP BY 1) r USING (sku_id)
    LEFT JOIN (SELECT sku_id, sum(quantity) AS units FROM shop_order WHERE status = 'PAID' GROUP BY 1) o
      USING (sku_id)
    WHERE s.stock_initial + coalesce(r.units, 0) - coalesce(o.units, 0) <> s.stock_current
      OR s.stock_current < 0`,
  HISTORY_BROKEN: `SELECT id, detail FROM (
      SELECT o.order_no AS id, 'state ' || o.status || ', history ends in ' || coalesce(t.to_state, 'nothing') AS detail,
        o.status IS DISTINCT FROM coalesce(t.to_state, 'PENDING_PAY') AS broken
      FROM shop_order o LEFT JOIN LATERAL (
        SELECT to_state FROM turngate_transition
        WHERE flow = 'order' AND entity_id = o.order_no ORDER BY version DESC LIMIT 1) t ON true
      UNION ALL
      SELECT entity_id, 'step ' || version || ' starts from ' || from_state, from_state IS DISTINCT FROM
        coalesce(lag(to_state) OVER (PARTITION BY entity_id ORDER BY version), 'PENDING_PAY')
      FROM turngate_transition WHERE flow = 'order') h
    WHERE broken`,
  DONE_WITHOUT_EFFECT: `SELECT r.key AS id, r.operation || ' is recorded as done, order is ' ||
      coalesce(o.status, 'missing') AS detail
    FROM turngate_record r LEFT JOIN shop_order o ON o.order_no = r.key
    WHERE r.state = 'done' AND (r.operation = 'order.pay' AND o.status IS DISTINCT FROM 'PAID'
      OR r.operation = 'order.cancel' AND o.status IS DISTINCT FROM 'CANCELLED')`,
  // Only while the record must still be there: records outlive payments by their retention.
  EFFECT_WITHOUT_RECORD: `SELECT p.order_no AS id, 'paid, but no record' AS detail
    FROM shop_payment p LEFT JOIN turngate_record r
      ON r.operation = 'order.pay' AND r.scope = '-' AND r.key = p.order_no
    WHERE r.key IS NULL AND p.paid_at > clock_timestamp() - interval '29 days'`,
  CREATED_ORDER_LOST: `SELECT r.key AS id, 'recorded order ' || made.order_no || ' does not exist' AS detail
    FROM turngate_record r
    CROSS JOIN LATERAL (SELECT substr(r.result, 2)::jsonb ->> 'orderNo' AS order_no) made
    LEFT JOIN shop_order o ON o.order_no = made.order_no
    WHERE r.operation = 'order.create' AND r.state = 'done' AND o.order_no IS NULL`,
};

/** Reads everything in one snapshot. */
export async function audit(pool: Pool): Promise<Audit> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const result = await readBooks(client);
    await client.query('COMMIT');
    client.release();
    return result;
  } catch (error) {
    client.release(error as Error);
    throw error;
  }
}

async function readBooks(client: PoolClient): Promise<Audit> {
  const violations: Violation[] = [];
  for (const [rule, text] of Object.entries(rules)) {
    const { rows } = await client.query(`${text} LIMIT 1000`);
    for (const { id, detail } of rows) violations.push({ rule, id, detail });
  }
  const byStatus = await client.query('SELECT status, count(*) AS n FROM shop_order GROUP BY 1');
  const stock = await client.query(
    `SELECT sku_id, stock_initial, stock_current, coalesce((SELECT sum(quantity) FROM shop_order o
       WHERE o.sku_id = s.sku_id AND o.status = 'PAID'), 0) AS sold
     FROM shop_sku s ORDER BY sku_id`,
  );
  return {
    violations,
    orders: {
      byStatus: Object.fromEntries(byStatus.rows.map((row) => [row.status, Number(row.n)])),
    },
    stock: stock.rows.map((row) => ({
      skuId: row.sku_id,
      initial: Number(row.stock_initial),
      current: Number(row.stock_current),
      soldUnits: Number(row.sold),
    })),
  };
}
