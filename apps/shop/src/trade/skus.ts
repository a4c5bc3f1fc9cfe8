/** Articles and their stock. */
import type { Operation } from 'turngate';
import type { SqlSession } from 'turngate/contract';
import { ShopError } from './shop-error.ts';
import { firstRow, nowMs, type Store, type Tx } from './store.ts';

/** An article as clients see it. */
export interface Sku {
  readonly skuId: string;
  readonly name: string;
  readonly priceMinor: number;
  readonly stock: number;
}

/** More units for an article. */
export interface Restock {
  readonly skuId: string;
  readonly restockNo: string;
  readonly units: number;
}

/** Writing calls about articles. */
export interface SkuOperations {
  readonly create: Operation<Tx, Sku, Sku>;
  readonly restock: Operation<Tx, Restock, Restock>;
}

const yearsMs = 3_650 * 86_400_000;

/** Declares them. */
export function skuOperations({ gate, database }: Store): SkuOperations {
  return {
    create: gate.operation({
      name: 'sku.create',
      key: (sku: Sku) => sku.skuId,
      keySource: 'skuId in the body; no header needed',
      retentionMs: yearsMs, // The article number is the key for as long as the article exists.
      run: (sku, { tx }) => insertSku(sku, database.session(tx)),
    }),
    restock: gate.operation({
      name: 'sku.restock',
      scope: (restock: Restock) => `sku:${restock.skuId}`,
      key: (restock: Restock) => restock.restockNo,
      keySource: 'restockNo in the body, per article; no header needed',
      retentionMs: yearsMs,
      run: (restock, { tx }) => addUnits(restock, database.session(tx)),
    }),
  };
}

/** The answer for an article nobody knows. */
export function skuNotFound(skuId: string): ShopError {
  return new ShopError('SKU_NOT_FOUND', `there is no article ${skuId}`);
}

async function insertSku({ skuId, name, priceMinor, stock }: Sku, sql: SqlSession): Promise<Sku> {
  // Only when the record is gone (retention) or the row was made by other means.
  if (
    (await firstRow(sql, 'SELECT 1 AS known FROM shop_sku WHERE sku_id = $1', [skuId])) !==
    undefined
  ) {
    throw new ShopError('SKU_CONFLICT', `article ${skuId} exists already`);
  }
  await sql.query(
    `INSERT INTO shop_sku (sku_id, name, price_minor, stock_initial, stock_current)
     VALUES ($1, $2, $3, $4, $4)`,
    [skuId, name, priceMinor, stock],
  );
  return { skuId, name, priceMinor, stock };
}

async function addUnits(restock: Restock, sql: SqlSession): Promise<Restock> {
  const { skuId, restockNo, units } = restock;
  const { affectedRows } = await sql.query(
    'UPDATE shop_sku SET stock_current = stock_current + $2 WHERE sku_id = $1',
    [skuId, units],
  );
  if (affectedRows === 0) throw skuNotFound(skuId);
  await sql.query(
    `INSERT INTO shop_restock (sku_id, restock_no, units, at_ms) VALUES ($1, $2, $3, ${nowMs(sql)})`,
    [skuId, restockNo, units],
  );
  return { skuId, restockNo, units };
}
