/** Generated from migrations/*.sql by scripts/generate.mjs; do not edit. */
import type { Migration } from '../sql/migration.ts';

/** All migrations in order. Released ones are never edited. */
export const migrations: readonly Migration[] = [
  { version: 1, name: 'records', statements: [
    `-- Idempotency records of atomic operations. STRICT and NOT NULL: a TEXT PRIMARY KEY alone takes NULLs,
-- and a number bound into TEXT would become '1.0'. Times are epoch milliseconds.
CREATE TABLE turngate_record (
  id                 TEXT NOT NULL PRIMARY KEY,
  operation          TEXT NOT NULL CHECK (operation <> ''),
  scope              TEXT NOT NULL CHECK (scope <> ''),
  record_key         TEXT NOT NULL CHECK (record_key <> ''),
  state              TEXT NOT NULL CHECK (state IN ('done', 'refused')),
  fingerprint        TEXT NOT NULL,
  owner              TEXT NOT NULL,
  result             TEXT NOT NULL,
  first_processed_ms INTEGER NOT NULL,
  expires_ms         INTEGER NOT NULL
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX turngate_record_expiry ON turngate_record (expires_ms)`,
  ] },
  { version: 2, name: 'transitions', statements: [
    `-- History of state machines, written in the transaction that moves the state. Times are UTC.
CREATE TABLE turngate_transition (
  flow       TEXT NOT NULL,
  entity_id  TEXT NOT NULL,
  version    INTEGER NOT NULL,
  event      TEXT NOT NULL,
  from_state TEXT NOT NULL,
  to_state   TEXT NOT NULL,
  at         TEXT NOT NULL,
  PRIMARY KEY (flow, entity_id, version)
) STRICT, WITHOUT ROWID`,
  ] },
  { version: 3, name: 'staged', statements: [
    `-- Staged operations: claimed before they run, made of recorded steps, taken over when a lease ends.
-- id is the digest of (operation, scope, record_key). Times are epoch milliseconds of this server, so
-- that one set of statements serves every dialect; due_at is when somebody else may take the row.
CREATE TABLE turngate_staged (
  id          TEXT NOT NULL PRIMARY KEY,
  operation   TEXT NOT NULL CHECK (operation <> ''),
  scope       TEXT NOT NULL CHECK (scope <> ''),
  record_key  TEXT NOT NULL CHECK (record_key <> ''),
  state       TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'sleeping',
    'released', 'indeterminate', 'parked', 'done', 'refused')),
  fingerprint TEXT NOT NULL,
  input       TEXT NOT NULL,
  owner       TEXT NOT NULL,
  attempt     INTEGER NOT NULL,
  failures    INTEGER NOT NULL,
  promised    INTEGER NOT NULL,
  lease_ms    INTEGER NOT NULL,
  due_at      INTEGER,
  result      TEXT,
  error       TEXT,
  started_at  INTEGER NOT NULL,
  expires_at  INTEGER
) STRICT, WITHOUT ROWID`,
    `-- Only what is unfinished has a due time, so the sweeper's index stays as small as the work in hand.
CREATE INDEX turngate_staged_due ON turngate_staged (due_at) WHERE due_at IS NOT NULL`,
    `CREATE INDEX turngate_staged_expiry ON turngate_staged (expires_at)`,
    `-- One row per step; written by the hold that did the step, never changed once it has a result.
CREATE TABLE turngate_step (
  id          TEXT NOT NULL,
  name        TEXT NOT NULL CHECK (name <> ''),
  seq         INTEGER NOT NULL,
  kind        TEXT NOT NULL,
  on_unknown  TEXT NOT NULL,
  fingerprint TEXT,
  state       TEXT NOT NULL CHECK (state IN ('started', 'done', 'refused')),
  result      TEXT,
  attempt     INTEGER NOT NULL,
  due_at      INTEGER,
  started_at  INTEGER NOT NULL,
  ended_at    INTEGER,
  PRIMARY KEY (id, name)
) STRICT, WITHOUT ROWID`,
  ] },
  { version: 4, name: 'reconcile', statements: [
    `-- Reconciliation: one row per run, per break, per line that waits for its other half.
CREATE TABLE turngate_recon_run (
  channel        TEXT NOT NULL,
  business_date  TEXT NOT NULL,
  state          TEXT NOT NULL CHECK (state IN ('open', 'running', 'done')),
  owner          TEXT NOT NULL,
  lease_until_ms INTEGER NOT NULL,
  tally          TEXT NOT NULL,
  after_kind     TEXT,
  after_key      TEXT,
  finished_at_ms INTEGER,
  PRIMARY KEY (channel, business_date)
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE turngate_recon_break (
  channel      TEXT NOT NULL,
  line_kind    TEXT NOT NULL,
  line_key     TEXT NOT NULL,
  code         TEXT NOT NULL,
  amount_minor INTEGER NOT NULL,
  currency     TEXT NOT NULL,
  detail       TEXT NOT NULL,
  state        TEXT NOT NULL,
  first_date   TEXT NOT NULL,
  last_run     TEXT NOT NULL,
  PRIMARY KEY (channel, line_kind, line_key, code)
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE turngate_recon_pool (
  channel    TEXT NOT NULL,
  side       TEXT NOT NULL,
  line_kind  TEXT NOT NULL,
  line_key   TEXT NOT NULL,
  line_ref   TEXT NOT NULL,
  line       TEXT NOT NULL,
  since_date TEXT NOT NULL,
  PRIMARY KEY (channel, side, line_kind, line_key, line_ref)
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE turngate_recon_left (
  channel       TEXT NOT NULL,
  business_date TEXT NOT NULL,
  side          TEXT NOT NULL,
  line_kind     TEXT NOT NULL,
  line_key      TEXT NOT NULL,
  line_ref      TEXT NOT NULL,
  line          TEXT NOT NULL,
  since_date    TEXT NOT NULL,
  PRIMARY KEY (channel, business_date, side, line_kind, line_key, line_ref)
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE turngate_recon_edge (
  channel       TEXT NOT NULL,
  business_date TEXT NOT NULL,
  edge_key      TEXT NOT NULL,
  PRIMARY KEY (channel, business_date, edge_key)
) STRICT, WITHOUT ROWID`,
  ] },
  { version: 5, name: 'jobs', statements: [
    `-- Jobs: one row per (job, period), so that a second trigger of the same period finds it taken.
CREATE TABLE turngate_job (
  job      TEXT NOT NULL PRIMARY KEY,
  since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE turngate_job_run (
  job            TEXT NOT NULL,
  period         TEXT NOT NULL,
  due_ms         INTEGER NOT NULL,
  state          TEXT NOT NULL CHECK (state IN ('open', 'running', 'done', 'failed')),
  owner          TEXT NOT NULL,
  fence          INTEGER NOT NULL,
  attempts       INTEGER NOT NULL,
  lease_until_ms INTEGER NOT NULL,
  started_ms     INTEGER,
  finished_ms    INTEGER,
  PRIMARY KEY (job, period)
) STRICT, WITHOUT ROWID`,
  ] },
  { version: 6, name: 'stock', statements: [
    `-- Hot stock in segments. At every commit: left + held + settled = total.
CREATE TABLE turngate_stock (
  item       TEXT NOT NULL PRIMARY KEY,
  total      INTEGER NOT NULL CHECK (total >= 0),
  segments   INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  known_left INTEGER
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE turngate_stock_segment (
  item       TEXT NOT NULL,
  segment    INTEGER NOT NULL,
  units_left INTEGER NOT NULL CHECK (units_left >= 0),
  PRIMARY KEY (item, segment)
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE turngate_stock_quota (
  item       TEXT NOT NULL,
  holder     TEXT NOT NULL,
  units_used INTEGER NOT NULL CHECK (units_used >= 0),
  PRIMARY KEY (item, holder)
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE turngate_reservation (
  reservation_id TEXT NOT NULL PRIMARY KEY,
  item           TEXT NOT NULL,
  holder         TEXT NOT NULL,
  units          INTEGER NOT NULL CHECK (units > 0),
  state          TEXT NOT NULL CHECK (state IN ('HELD', 'SETTLED', 'RELEASED', 'EXPIRED')),
  token          TEXT NOT NULL,
  due_ms         INTEGER NOT NULL
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX turngate_reservation_due ON turngate_reservation (due_ms) WHERE state = 'HELD'`,
    `CREATE TABLE turngate_reservation_part (
  reservation_id TEXT NOT NULL,
  segment        INTEGER NOT NULL,
  units          INTEGER NOT NULL CHECK (units > 0),
  PRIMARY KEY (reservation_id, segment)
) STRICT, WITHOUT ROWID`,
  ] },
  { version: 7, name: 'messages', statements: [
    `-- Outbox and inbox. A lane is all messages of one key: its row's lock makes order the order of commits.
CREATE TABLE turngate_outbox_lane (
  topic          TEXT NOT NULL,
  lane           TEXT NOT NULL,
  last_sequence  INTEGER NOT NULL,
  sent_sequence  INTEGER NOT NULL,
  owner          TEXT NOT NULL,
  lease_until_ms INTEGER NOT NULL,
  failures       INTEGER NOT NULL,
  PRIMARY KEY (topic, lane)
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX turngate_outbox_lane_waiting ON turngate_outbox_lane (lease_until_ms)
  WHERE last_sequence > sent_sequence`,
    `CREATE TABLE turngate_outbox (
  topic      TEXT NOT NULL,
  lane       TEXT NOT NULL,
  sequence   INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  payload    TEXT NOT NULL,
  headers    TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  parked_ms  INTEGER,
  PRIMARY KEY (topic, lane, sequence)
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE turngate_inbox (
  consumer    TEXT NOT NULL,
  source      TEXT NOT NULL,
  message_id  TEXT NOT NULL,
  token       TEXT NOT NULL,
  consumed_ms INTEGER NOT NULL,
  PRIMARY KEY (consumer, source, message_id)
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX turngate_inbox_age ON turngate_inbox (consumed_ms)`,
    `CREATE TABLE turngate_inbox_start (
  consumer      TEXT NOT NULL,
  source        TEXT NOT NULL,
  message_id    TEXT NOT NULL,
  starts        INTEGER NOT NULL,
  first_ms      INTEGER NOT NULL,
  parked_reason TEXT,
  PRIMARY KEY (consumer, source, message_id)
) STRICT, WITHOUT ROWID`,
  ] },
  { version: 8, name: 'sagas', statements: [
    `-- Branches of global transactions (the barrier), and semantic locks. Sagas themselves are staged operations.
CREATE TABLE turngate_branch (
  gid        TEXT NOT NULL,
  branch     TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('TRIED', 'CONFIRMED', 'CANCELLED', 'SUSPENDED')),
  token      TEXT NOT NULL,
  digest     TEXT NOT NULL,
  first_op   TEXT NOT NULL,
  result     TEXT,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  PRIMARY KEY (gid, branch)
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX turngate_branch_age ON turngate_branch (updated_ms)`,
    `CREATE TABLE turngate_guard (
  resource   TEXT NOT NULL PRIMARY KEY,
  saga_id    TEXT NOT NULL,
  token      TEXT NOT NULL,
  until_ms   INTEGER NOT NULL
) STRICT, WITHOUT ROWID`,
  ] },
  { version: 9, name: 'tokens', statements: [
    `-- Submit tokens, by a digest of token, operation and subject; vouchers, one row per side action done.
CREATE TABLE turngate_submit_token (
  digest     TEXT NOT NULL PRIMARY KEY,
  expires_ms INTEGER NOT NULL,
  spent_ms   INTEGER
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX turngate_submit_token_age ON turngate_submit_token (expires_ms)`,
    `CREATE TABLE turngate_voucher (
  name        TEXT NOT NULL,
  voucher_key TEXT NOT NULL,
  token       TEXT NOT NULL,
  created_ms  INTEGER NOT NULL,
  PRIMARY KEY (name, voucher_key)
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX turngate_voucher_age ON turngate_voucher (created_ms)`,
  ] },
  { version: 10, name: 'audit', statements: [
    `-- Who did what by hand to which record, staged operation or lock. Lines are added with the act, in its
-- transaction where both are in this database; an act elsewhere has outcome "asked" until it is settled.
CREATE TABLE turngate_audit (
  id          TEXT NOT NULL PRIMARY KEY,
  at_ms       INTEGER NOT NULL,
  actor       TEXT NOT NULL,
  act         TEXT NOT NULL,
  target_kind TEXT NOT NULL,
  operation   TEXT NOT NULL,
  scope       TEXT NOT NULL,
  target_key  TEXT NOT NULL,
  reason      TEXT NOT NULL,
  detail      TEXT NOT NULL,
  outcome     TEXT NOT NULL
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX turngate_audit_time ON turngate_audit (at_ms, id)`,
  ] },
  { version: 11, name: 'external-branches', statements: [
    `-- Branches whose effect is outside the database: states while a call is out, lease and fence of the
-- attempt, and when a second cancel is due because a lost try may have landed after the first. A new
-- table, because SQLite cannot change a check.
CREATE TABLE turngate_branch_new (
  gid            TEXT NOT NULL,
  branch         TEXT NOT NULL,
  state          TEXT NOT NULL CHECK (state IN ('TRYING', 'TRIED', 'CONFIRMING', 'CONFIRMED', 'CANCELLING', 'CANCELLED', 'SUSPENDED')),
  token          TEXT NOT NULL,
  digest         TEXT NOT NULL,
  first_op       TEXT NOT NULL,
  result         TEXT,
  created_ms     INTEGER NOT NULL,
  updated_ms     INTEGER NOT NULL,
  mode           TEXT NOT NULL DEFAULT 'local' CHECK (mode IN ('local', 'external')),
  fence          INTEGER NOT NULL DEFAULT 0,
  lease_until_ms INTEGER NOT NULL DEFAULT 0,
  recancel_ms    INTEGER,
  PRIMARY KEY (gid, branch)
) STRICT, WITHOUT ROWID`,
    `INSERT INTO turngate_branch_new (gid, branch, state, token, digest, first_op, result, created_ms, updated_ms)
  SELECT gid, branch, state, token, digest, first_op, result, created_ms, updated_ms FROM turngate_branch`,
    `DROP TABLE turngate_branch`,
    `ALTER TABLE turngate_branch_new RENAME TO turngate_branch`,
    `CREATE INDEX turngate_branch_age ON turngate_branch (updated_ms)`,
    `CREATE INDEX turngate_branch_recancel ON turngate_branch (recancel_ms) WHERE recancel_ms IS NOT NULL`,
  ] },
  { version: 12, name: 'lean-branches', statements: [
    `-- Clean-up reads branches by the time in their names: an index by their last change only cost time.
DROP INDEX turngate_branch_age`,
  ] },
];
