/** The shop's own tables, as numbered changes applied once each. Money is integer minor units. */
import type { Pool } from 'pg';

const changes: readonly string[] = [
  `CREATE TABLE shop_sku (
    sku_id        text COLLATE "C" PRIMARY KEY,
    name          text NOT NULL,
    price_minor   bigint NOT NULL CHECK (price_minor >= 0),
    stock_initial bigint NOT NULL CHECK (stock_initial >= 0),
    stock_current bigint NOT NULL CHECK (stock_current >= 0),
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  CREATE TABLE shop_restock (
    sku_id     text COLLATE "C" NOT NULL REFERENCES shop_sku,
    restock_no text COLLATE "C" NOT NULL,
    units      bigint NOT NULL CHECK (units > 0),
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (sku_id, restock_no)
  );
  CREATE TABLE shop_order (
    order_no     text COLLATE "C" PRIMARY KEY,
    user_id      text COLLATE "C" NOT NULL,
    sku_id       text COLLATE "C" NOT NULL REFERENCES shop_sku,
    quantity     bigint NOT NULL CHECK (quantity > 0),
    amount_minor bigint NOT NULL CHECK (amount_minor >= 0),
    currency     text COLLATE "C" NOT NULL,
    status       text COLLATE "C" NOT NULL CHECK (status IN ('PENDING_PAY', 'PAID', 'CANCELLED')),
    version      bigint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL
  );
  CREATE TABLE shop_payment (
    order_no     text COLLATE "C" PRIMARY KEY REFERENCES shop_order,
    amount_minor bigint NOT NULL,
    paid_at      timestamptz NOT NULL
  );`,
];

/** Brings the shop's tables up to date; several processes may call it at once. */
export async function migrateShop(pool: Pool): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('SELECT pg_advisory_xact_lock(7261584460212)');
    await client.query('CREATE TABLE IF NOT EXISTS shop_migration (version integer PRIMARY KEY)');
    const { rows } = await client.query(
      'SELECT coalesce(max(version), 0) AS v FROM shop_migration',
    );
    for (let version = Number(rows[0].v) + 1; version <= changes.length; version++) {
      await client.query(changes[version - 1] as string);
      await client.query('INSERT INTO shop_migration VALUES ($1)', [version]);
    }
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
}
