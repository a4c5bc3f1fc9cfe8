/**
 * The shop's own tables in MySQL and MariaDB: the same as in PostgreSQL. Numbers of customers and
 * things are ASCII and compared byte by byte. No foreign keys: InnoDB would lock the parent's row
 * shared at every child's insert, and an article's row is the hottest of all; the statements that
 * insert children check for the parent themselves.
 *
 * MySQL commits each schema change by itself, so every statement can be repeated after a crash.
 */
import type { Pool } from 'mysql2/promise';
import { mysqlArchive } from './schema-archive.ts';

const id = 'VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin';
const word = 'VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin';
const text = 'VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

const mysqlChanges: readonly (readonly string[])[] = [
  [
    `CREATE TABLE IF NOT EXISTS shop_sku (
      sku_id        ${id} PRIMARY KEY,
      name          ${text} NOT NULL,
      price_minor   BIGINT NOT NULL CHECK (price_minor >= 0),
      stock_initial BIGINT NOT NULL CHECK (stock_initial >= 0),
      stock_current BIGINT NOT NULL CHECK (stock_current >= 0)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_restock (
      sku_id     ${id} NOT NULL,
      restock_no ${id} NOT NULL,
      units      BIGINT NOT NULL CHECK (units > 0),
      at_ms      BIGINT NOT NULL DEFAULT 0,
      PRIMARY KEY (sku_id, restock_no)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_order (
      order_no      ${id} PRIMARY KEY,
      user_id       ${id} NOT NULL,
      sku_id        ${id} NOT NULL,
      quantity      BIGINT NOT NULL CHECK (quantity > 0),
      amount_minor  BIGINT NOT NULL CHECK (amount_minor >= 0),
      currency      ${word} NOT NULL,
      status        ${word} NOT NULL CHECK (status IN
        ('PENDING_PAY', 'PAID', 'SHIPPED', 'COMPLETED', 'CLOSING', 'CLOSED', 'CANCELLED')),
      version       BIGINT NOT NULL DEFAULT 0,
      client_key    VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
      activity_id   ${id},
      created_at_ms BIGINT NOT NULL DEFAULT 0,
      due_at_ms     BIGINT NOT NULL DEFAULT 0,
      KEY shop_order_due (status, due_at_ms),
      KEY shop_order_activity (activity_id, user_id)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_payment (
      order_no       ${id} PRIMARY KEY,
      amount_minor   BIGINT NOT NULL,
      source         ${word} NOT NULL DEFAULT 'CASH' CHECK (source IN ('CASH', 'BALANCE', 'CHANNEL')),
      payment_no     ${id},
      trade_no       ${id},
      refunded_minor BIGINT NOT NULL DEFAULT 0,
      paid_at_ms     BIGINT NOT NULL DEFAULT 0,
      KEY shop_payment_no (payment_no),
      CONSTRAINT shop_payment_refunds CHECK (refunded_minor BETWEEN 0 AND amount_minor)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_payment_attempt (
      payment_no    ${id} PRIMARY KEY,
      order_no      ${id} NOT NULL,
      amount_minor  BIGINT NOT NULL,
      currency      ${word} NOT NULL,
      status        ${word} NOT NULL CHECK (status IN ('PENDING', 'SUCCESS', 'FAILED')),
      trade_no      ${id},
      created_at_ms BIGINT NOT NULL,
      settled_at_ms BIGINT,
      KEY shop_payment_attempt_order (order_no)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_refund (
      order_no      ${id} NOT NULL,
      refund_no     ${id} NOT NULL,
      payment_no    ${id},
      amount_minor  BIGINT NOT NULL CHECK (amount_minor > 0),
      reason        ${word} NOT NULL CHECK (reason IN ('REQUESTED', 'LATE_PAYMENT', 'RETURN')),
      status        ${word} NOT NULL CHECK (status IN ('PENDING', 'SUCCEEDED', 'FAILED')),
      attempts      INT NOT NULL,
      next_at_ms    BIGINT NOT NULL,
      created_at_ms BIGINT NOT NULL,
      PRIMARY KEY (order_no, refund_no),
      KEY shop_refund_due (status, next_at_ms)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_account (
      user_id       ${id} PRIMARY KEY,
      balance_minor BIGINT NOT NULL CHECK (balance_minor >= 0)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_ledger (
      txn_id       ${id} NOT NULL,
      account      ${id} NOT NULL,
      kind         ${id} NOT NULL,
      amount_minor BIGINT NOT NULL,
      at_ms        BIGINT NOT NULL,
      PRIMARY KEY (txn_id, account)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_coupon (
      coupon_id ${id} PRIMARY KEY,
      total     BIGINT NOT NULL,
      per_user  BIGINT NOT NULL,
      redeemed  BIGINT NOT NULL,
      CONSTRAINT shop_coupon_redeemed CHECK (redeemed BETWEEN 0 AND total)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_coupon_redemption (
      coupon_id ${id} NOT NULL,
      user_id   ${id} NOT NULL,
      redeem_no ${id} NOT NULL,
      at_ms     BIGINT NOT NULL,
      PRIMARY KEY (coupon_id, user_id, redeem_no)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_activity (
      activity_id ${id} PRIMARY KEY,
      sku_id      ${id} NOT NULL,
      units       BIGINT NOT NULL,
      per_user    BIGINT NOT NULL
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_break (
      code      ${id} NOT NULL,
      break_key ${id} NOT NULL,
      detail    ${text} NOT NULL,
      at_ms     BIGINT NOT NULL,
      PRIMARY KEY (code, break_key)
    ) ENGINE = InnoDB`,
  ],

  // Returns, checkouts, and the depot (which may also live in another database).
  [
    `CREATE TABLE IF NOT EXISTS shop_return (
      order_no      ${id} NOT NULL,
      return_no     ${id} NOT NULL,
      user_id       ${id} NOT NULL,
      sku_id        ${id} NOT NULL,
      units         BIGINT NOT NULL CHECK (units > 0),
      amount_minor  BIGINT NOT NULL CHECK (amount_minor > 0),
      status        ${word} NOT NULL CHECK (status IN
        ('REFUNDING', 'REFUNDED', 'RESTOCKED', 'COUPON_BACK', 'DONE', 'REFUSED')),
      created_at_ms BIGINT NOT NULL,
      PRIMARY KEY (order_no, return_no)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_checkout (
      gid           ${id} PRIMARY KEY,
      checkout_no   ${id} NOT NULL,
      user_id       ${id} NOT NULL,
      amount_minor  BIGINT NOT NULL CHECK (amount_minor >= 0),
      state         ${word} NOT NULL CHECK (state IN ('HELD', 'CONFIRMED', 'CANCELLED')),
      created_at_ms BIGINT NOT NULL
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_depot (
      sku_id     ${id} PRIMARY KEY,
      units_left BIGINT NOT NULL CHECK (units_left >= 0),
      units_held BIGINT NOT NULL CHECK (units_held >= 0),
      units_sold BIGINT NOT NULL CHECK (units_sold >= 0)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_depot_supply (
      sku_id    ${id} NOT NULL,
      supply_no ${id} NOT NULL,
      units     BIGINT NOT NULL CHECK (units > 0),
      at_ms     BIGINT NOT NULL,
      PRIMARY KEY (sku_id, supply_no)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_depot_hold (
      gid         ${id} PRIMARY KEY,
      checkout_no ${id} NOT NULL,
      sku_id      ${id} NOT NULL,
      units       BIGINT NOT NULL CHECK (units > 0),
      state       ${word} NOT NULL CHECK (state IN ('HELD', 'CONFIRMED', 'CANCELLED'))
    ) ENGINE = InnoDB`,
  ],
  [
    `CREATE TABLE IF NOT EXISTS shop_points (
      order_no ${id} PRIMARY KEY,
      user_id  ${id} NOT NULL,
      points   BIGINT NOT NULL CHECK (points >= 0),
      at_ms    BIGINT NOT NULL,
      INDEX shop_points_user (user_id)
    ) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS shop_notification (
      order_no ${id} NOT NULL,
      kind     ${word} NOT NULL,
      user_id  ${id} NOT NULL,
      at_ms    BIGINT NOT NULL,
      PRIMARY KEY (order_no, kind)
    ) ENGINE = InnoDB`,
  ],
  mysqlArchive,
];

const lockName = "CONCAT(LEFT(SHA2(DATABASE(), 256), 12), '_shop_migration')";
const lockWaitSeconds = 30;

/** Several processes may call it at once: they take turns. Call it after the library's `migrate`. */
export async function migrateShopOnMysql(pool: Pool): Promise<void> {
  const connection = await pool.getConnection();
  const rows = async (sql: string): Promise<Record<string, unknown>[]> =>
    (await connection.query(sql))[0] as Record<string, unknown>[];
  try {
    const [locked] = await rows(`SELECT GET_LOCK(${lockName}, ${lockWaitSeconds}) AS got`);
    if (Number(locked?.['got']) !== 1) throw new Error('another process is migrating the shop');
    await rows(
      'CREATE TABLE IF NOT EXISTS shop_migration (version INT PRIMARY KEY) ENGINE = InnoDB',
    );
    const [found] = await rows('SELECT COALESCE(MAX(version), 0) AS v FROM shop_migration');
    for (let version = Number(found?.['v']) + 1; version <= mysqlChanges.length; version++) {
      for (const statement of mysqlChanges[version - 1] as readonly string[]) await rows(statement);
      await rows(`INSERT INTO shop_migration VALUES (${version})`);
    }
  } finally {
    connection.destroy(); // The lock ends with it.
  }
}
