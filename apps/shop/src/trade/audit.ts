/** The books, recomputed from the tables: lists every broken invariant, trusts no counter. */
import type { SqlSession } from 'turngate/contract';
import { auditRules } from './audit-rules.ts';
import type { Store } from './store.ts';

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

const rowsMax = 1_000; // Per rule: a broken book shows in the first thousand rows.

/** Reads everything in one snapshot. */
export function audit(store: Store): Promise<Audit> {
  return store.snapshot(readBooks);
}

async function readBooks(sql: SqlSession): Promise<Audit> {
  const violations: Violation[] = [];
  for (const [rule, text] of Object.entries(auditRules(sql.dialect))) {
    const { rows } = await sql.query(`${text} LIMIT ${rowsMax}`, []);
    for (const { id, detail } of rows) {
      violations.push({ rule, id: String(id), detail: String(detail) });
    }
  }
  const byStatus = await sql.query(
    'SELECT status, count(*) AS n FROM shop_every_order GROUP BY status',
    [],
  );
  const stock = await sql.query(
    `SELECT s.sku_id, s.stock_initial, s.stock_current, coalesce((
       SELECT sum(o.quantity) FROM shop_every_order o JOIN shop_every_payment p ON p.order_no = o.order_no
       WHERE o.sku_id = s.sku_id), 0) AS sold
     FROM shop_sku s ORDER BY s.sku_id`,
    [],
  );
  return {
    violations,
    orders: {
      byStatus: Object.fromEntries(
        byStatus.rows.map(({ status, n }) => [String(status), Number(n)]),
      ),
    },
    stock: stock.rows.map((row) => ({
      skuId: String(row['sku_id']),
      initial: Number(row['stock_initial']),
      current: Number(row['stock_current']),
      soldUnits: Number(row['sold']),
    })),
  };
}
