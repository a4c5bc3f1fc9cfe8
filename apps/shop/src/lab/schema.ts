/**
 * The tables of the lab. Nothing in them forbids a loss: no CHECK on the stock, no unique charge, so
 * that what an implementation does wrong stays visible to the audit.
 */
export const labTables = [
  `CREATE TABLE lab_sku (
    id text PRIMARY KEY,
    cell text NOT NULL,
    initial integer NOT NULL,
    current integer NOT NULL)`,
  'CREATE INDEX ON lab_sku (cell)',
  `CREATE TABLE lab_order (
    order_no text PRIMARY KEY,
    cell text NOT NULL,
    sku_id text NOT NULL REFERENCES lab_sku,
    status text NOT NULL DEFAULT 'created',
    version integer NOT NULL DEFAULT 0,
    cancelled_at timestamptz)`,
  'CREATE INDEX ON lab_order (cell)',
  // One row is one time that money was taken.
  `CREATE TABLE lab_charge (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_no text NOT NULL REFERENCES lab_order,
    request_key text NOT NULL)`,
  'CREATE INDEX ON lab_charge (order_no)',
  // Idempotency records of the wrong implementations: with the unique index, and without it.
  'CREATE TABLE lab_record (request_key text PRIMARY KEY, state text NOT NULL)',
  'CREATE TABLE lab_record_loose (request_key text NOT NULL, state text NOT NULL)',
  'CREATE INDEX ON lab_record_loose (request_key)',
  // Their lease lock, as people write it with SET NX PX.
  `CREATE TABLE lab_lock (
    name text PRIMARY KEY,
    owner text NOT NULL,
    expires_at timestamptz NOT NULL)`,
];
