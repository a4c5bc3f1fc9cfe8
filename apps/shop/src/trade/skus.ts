/** Articles and their stock. */
import type { Gate, Operation } from 'turngate';
import type { PgClientLike } from 'turngate/postgres';
import { ShopError } from './shop-error.ts';

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
  readonly create: Operation<PgClientLike, Sku, Sku>;
  readonly restock: Operation<PgClientLike, Restock, Restock>;
}

const yearsMs = 3_650 * 86_400_000;

/** Declares them. */
export function skuOperations(gate: Gate<PgClientLike>): SkuOperations {
  return {
    create: gate.operation({
      name: 'sku.create',
      key: (sku: Sku) => sku.skuId,
      keySource: 'skuId in the body; no header needed',
      retentionMs: yearsMs, // The article number is the key for as long as the article exists.
      run: (sku, { tx }) => insertSku(sku, tx),
    }),
    restock: gate.operation({
      name: 'sku.restock',
      scope: (restock: Restock) => `sku:${restock.skuId}`,
      key: (restock: Restock) => restock.restockNo,
      keySource: 'restockNo in the body, per article; no header needed',
      retentionMs: yearsMs,
      run: (restock, { tx }) => addUnits(restock, tx),
    }),
  };
}

/** Reads one article. */
export async function readSku(db: PgClientLike, skuId: string): Promise<Sku> {
  const text = 'SELECT name, price_minor, stock_current FROM shop_sku WHERE sku_id = $1';
  const { rows } = await db.query({ name: 'sku_read', text, values: [skuId] });
  if (rows.length === 0) throw new ShopError('SKU_NOT_FOUND', `there is no article ${skuId}`);
  const [row] = rows;
  const { name } = row;
  return { skuId, name, priceMinor: Number(row.price_minor), stock: Number(row.stock_current) };
}

async function insertSku({ skuId, name, priceMinor, stock }: Sku, tx: PgClientLike): Promise<Sku> {
  const { rowCount } = await tx.query(
    `INSERT INTO shop_sku (sku_id, name, price_minor, stock_initial, stock_current)
     VALUES ($1, $2, $3, $4, $4) ON CONFLICT DO NOTHING`,
    [skuId, name, priceMinor, stock],
  );
  // Only when the record is gone (retention) or the row was made by other means.
  if (rowCount === 0) throw new ShopError('SKU_CONFLICT', `article ${skuId} exists already`);
  return { skuId, name, priceMinor, stock };
}

async function addUnits(restock: Restock, tx: PgClientLike): Promise<Restock> {
  const { skuId, restockNo, units } = restock;
  const { rowCount } = await tx.query(
    'UPDATE shop_sku SET stock_current = stock_current + $2 WHERE sku_id = $1',
    [skuId, units],
  );
  if (rowCount === 0) throw new ShopError('SKU_NOT_FOUND', `there is no article ${skuId}`);
  await tx.query('INSERT INTO shop_restock (sku_id, restock_no, units) VALUES ($1, $2, $3)', [
    skuId,
    restockNo,
    units,
  ]);
  return { skuId, restockNo, units };
}
