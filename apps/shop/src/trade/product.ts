/**
 * An article's page under many readers. What the article is, is loaded by one reader for all and kept;
 * how many are left is never kept: who has just bought sees it.
 */
import { singleFlight } from 'turngate';
import { pageCache, type SharedRedis } from '../database/page-cache.ts';
import { joinedReads } from './joined-reads.ts';
import { type Sku, skuNotFound } from './skus.ts';
import type { Store } from './store.ts';

/** How pages are kept. */
export interface PageSettings {
  /**
   * How long name and price are served without asking the database; then one reader loads them again,
   * while the others get the old ones.
   *
   * @unit milliseconds, integer, 1 to 3_600_000
   */
  readonly freshMs: number;
}

type Description = Pick<Sku, 'name' | 'priceMinor'>;

/** Served while one reader loads, or when the database does not answer. */
const staleMs = 60_000;
const waitMs = 3_000;

/** @throws SKU_NOT_FOUND */
export function productReader(
  { gate, database }: Store,
  { freshMs }: PageSettings,
  redis: SharedRedis | undefined,
): (skuId: string) => Promise<Sku> {
  const descriptions = singleFlight<Description>(gate, {
    name: `product/${redis?.scope ?? '-'}`,
    cache: pageCache(redis),
    freshMs,
    staleMs,
    waitMs,
    whileLoading: 'stale',
    async load(skuId) {
      const text = 'SELECT name, price_minor FROM shop_sku WHERE sku_id = $1';
      const [row] = (await database.query(text, [skuId])).rows;
      if (row === undefined) throw skuNotFound(skuId);
      return { name: String(row['name']), priceMinor: Number(row['price_minor']) };
    },
  });
  const stockOf = joinedReads(async (skuId) => {
    const text = 'SELECT stock_current FROM shop_sku WHERE sku_id = $1';
    const [row] = (await database.query(text, [skuId])).rows;
    return row === undefined ? undefined : Number(row['stock_current']);
  });
  return async (skuId) => {
    // First, so that numbers nobody knows reach neither locks nor cache.
    const stock = await stockOf(skuId);
    if (stock === undefined) throw skuNotFound(skuId);
    const { name, priceMinor } = await descriptions.get(skuId);
    return { skuId, name, priceMinor, stock };
  };
}
