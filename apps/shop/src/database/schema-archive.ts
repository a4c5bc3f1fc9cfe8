/**
 * The archive of finished orders: each table that goes with an order once more, and a view over both.
 * A later column has to be added to both tables and the view. Part of a numbered change: never edited.
 */
const tables = ['order', 'payment', 'payment_attempt', 'refund', 'return'];

const everyView = (table: string): string =>
  `CREATE OR REPLACE VIEW shop_every_${table} AS
    SELECT * FROM shop_${table} UNION ALL SELECT * FROM shop_${table}_archive`;

export const postgresArchive: string = [
  // What the archive job looks for.
  `CREATE INDEX shop_order_finished ON shop_order (due_at_ms)
    WHERE status IN ('COMPLETED', 'CLOSED', 'CANCELLED')`,
  ...tables.flatMap((table) => [
    `CREATE TABLE shop_${table}_archive (LIKE shop_${table} INCLUDING ALL)`,
    everyView(table),
  ]),
].join(';\n');

export const mysqlArchive: readonly string[] = tables.flatMap((table) => [
  `CREATE TABLE IF NOT EXISTS shop_${table}_archive LIKE shop_${table}`,
  everyView(table),
]);
