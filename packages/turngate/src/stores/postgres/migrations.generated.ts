/** Generated from migrations/*.sql by scripts/generate.mjs; do not edit. */
import type { Migration } from '../sql/migration.ts';

/** All migrations in order. Released ones are never edited. */
export const migrations: readonly Migration[] = [
  { version: 1, name: 'records', statements: [
    `-- Idempotency records of atomic operations. A row is written once, with the effect, and never updated.
-- COLLATE "C": keys compare byte by byte, whatever the database's locale.
CREATE TABLE turngate_record (
  operation          text COLLATE "C" NOT NULL CHECK (operation <> ''),
  scope              text COLLATE "C" NOT NULL CHECK (scope <> ''),
  key                text COLLATE "C" NOT NULL CHECK (key <> ''),
  state              text COLLATE "C" NOT NULL CHECK (state IN ('done', 'refused')),
  fingerprint        text COLLATE "C" NOT NULL,
  owner              text COLLATE "C" NOT NULL,
  result             text NOT NULL,
  first_processed_at timestamptz NOT NULL,
  expires_at         timestamptz NOT NULL,
  PRIMARY KEY (operation, scope, key)
)`,
    `-- BRIN: rows arrive in time order, so a few bytes per block find the expired ones; a B-tree here
-- would cost every first call a second index insert.
CREATE INDEX turngate_record_expiry ON turngate_record USING brin (expires_at) WITH (autosummarize = on)`,
  ] },
  { version: 2, name: 'locks', statements: [
    `-- Locks in table mode: one row per name. Rows stay, so that the fence of a name only grows.
-- fillfactor leaves room for in-page (HOT) updates: every grant and renewal is one.
CREATE TABLE turngate_lock (
  name       text COLLATE "C" PRIMARY KEY CHECK (name <> ''),
  owner      text COLLATE "C",
  fence      bigint NOT NULL,
  expires_at timestamptz NOT NULL
) WITH (fillfactor = 50)`,
  ] },
  { version: 3, name: 'transitions', statements: [
    `-- History of state machines, written by the statement that moves the state.
CREATE TABLE turngate_transition (
  flow       text COLLATE "C" NOT NULL,
  entity_id  text COLLATE "C" NOT NULL,
  version    bigint NOT NULL,
  event      text COLLATE "C" NOT NULL,
  from_state text COLLATE "C" NOT NULL,
  to_state   text COLLATE "C" NOT NULL,
  at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (flow, entity_id, version)
)`,
  ] },
  { version: 4, name: 'staged', statements: [
    `-- Staged operations: claimed before they run, made of recorded steps, taken over when a lease ends.
-- id is the digest of (operation, scope, record_key). Times are epoch milliseconds of this server, so
-- that one set of statements serves every dialect; due_at is when somebody else may take the row.
CREATE TABLE turngate_staged (
  id          text COLLATE "C" PRIMARY KEY,
  operation   text COLLATE "C" NOT NULL CHECK (operation <> ''),
  scope       text COLLATE "C" NOT NULL CHECK (scope <> ''),
  record_key  text COLLATE "C" NOT NULL CHECK (record_key <> ''),
  state       text COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'running', 'sleeping',
    'released', 'indeterminate', 'parked', 'done', 'refused')),
  fingerprint text COLLATE "C" NOT NULL,
  input       text NOT NULL,
  owner       text COLLATE "C" NOT NULL,
  attempt     bigint NOT NULL,
  failures    integer NOT NULL,
  promised    smallint NOT NULL,
  lease_ms    bigint NOT NULL,
  due_at      bigint,
  result      text,
  error       text,
  started_at  bigint NOT NULL,
  expires_at  bigint
) WITH (fillfactor = 70)`,
    `-- Only what is unfinished has a due time, so the sweeper's index stays as small as the work in hand.
CREATE INDEX turngate_staged_due ON turngate_staged (due_at) WHERE due_at IS NOT NULL`,
    `CREATE INDEX turngate_staged_expiry ON turngate_staged USING brin (expires_at) WITH (autosummarize = on)`,
    `-- One row per step; written by the hold that did the step, never changed once it has a result.
CREATE TABLE turngate_step (
  id          text COLLATE "C" NOT NULL,
  name        text COLLATE "C" NOT NULL CHECK (name <> ''),
  seq         bigint NOT NULL,
  kind        text COLLATE "C" NOT NULL,
  on_unknown  text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C",
  state       text COLLATE "C" NOT NULL CHECK (state IN ('started', 'done', 'refused')),
  result      text,
  attempt     bigint NOT NULL,
  due_at      bigint,
  started_at  bigint NOT NULL,
  ended_at    bigint,
  PRIMARY KEY (id, name)
)`,
  ] },
  { version: 5, name: 'lock-blocks', statements: [
    `-- Locks: how many fences the newest grant reserved, so that the next grant is above all of them. A
-- process of the version before leaves it as it is, which at worst skips a few numbers.
ALTER TABLE turngate_lock ADD COLUMN fences bigint NOT NULL DEFAULT 1`,
    `-- Fences of locks in advisory session mode. CACHE 1: a session that caches numbers would hand out
-- smaller ones after a later session's.
CREATE SEQUENCE turngate_lock_fence AS bigint CACHE 1`,
  ] },
  { version: 6, name: 'reconcile', statements: [
    `-- Reconciliation: one row per run, per break, per line that waits for its other half.
CREATE TABLE turngate_recon_run (
  channel        text COLLATE "C" NOT NULL,
  business_date  text COLLATE "C" NOT NULL,
  state          text COLLATE "C" NOT NULL CHECK (state IN ('open', 'running', 'done')),
  owner          text COLLATE "C" NOT NULL,
  lease_until_ms bigint NOT NULL,
  tally          text NOT NULL,
  after_kind     text COLLATE "C",
  after_key      text COLLATE "C",
  finished_at_ms bigint,
  PRIMARY KEY (channel, business_date)
)`,
    `CREATE TABLE turngate_recon_break (
  channel      text COLLATE "C" NOT NULL,
  line_kind    text COLLATE "C" NOT NULL,
  line_key     text COLLATE "C" NOT NULL,
  code         text COLLATE "C" NOT NULL,
  amount_minor bigint NOT NULL,
  currency     text COLLATE "C" NOT NULL,
  detail       text NOT NULL,
  state        text COLLATE "C" NOT NULL,
  first_date   text COLLATE "C" NOT NULL,
  last_run     text COLLATE "C" NOT NULL,
  PRIMARY KEY (channel, line_kind, line_key, code)
)`,
    `CREATE TABLE turngate_recon_pool (
  channel    text COLLATE "C" NOT NULL,
  side       text COLLATE "C" NOT NULL,
  line_kind  text COLLATE "C" NOT NULL,
  line_key   text COLLATE "C" NOT NULL,
  line_ref   text COLLATE "C" NOT NULL,
  line       text NOT NULL,
  since_date text COLLATE "C" NOT NULL,
  PRIMARY KEY (channel, side, line_kind, line_key, line_ref)
)`,
    `CREATE TABLE turngate_recon_left (
  channel       text COLLATE "C" NOT NULL,
  business_date text COLLATE "C" NOT NULL,
  side          text COLLATE "C" NOT NULL,
  line_kind     text COLLATE "C" NOT NULL,
  line_key      text COLLATE "C" NOT NULL,
  line_ref      text COLLATE "C" NOT NULL,
  line          text NOT NULL,
  since_date    text COLLATE "C" NOT NULL,
  PRIMARY KEY (channel, business_date, side, line_kind, line_key, line_ref)
)`,
    `CREATE TABLE turngate_recon_edge (
  channel       text COLLATE "C" NOT NULL,
  business_date text COLLATE "C" NOT NULL,
  edge_key      text COLLATE "C" NOT NULL,
  PRIMARY KEY (channel, business_date, edge_key)
)`,
  ] },
  { version: 7, name: 'jobs', statements: [
    `-- Jobs: one row per (job, period), so that a second trigger of the same period finds it taken.
CREATE TABLE turngate_job (
  job      text COLLATE "C" PRIMARY KEY,
  since_ms bigint NOT NULL
)`,
    `CREATE TABLE turngate_job_run (
  job            text COLLATE "C" NOT NULL,
  period         text COLLATE "C" NOT NULL,
  due_ms         bigint NOT NULL,
  state          text COLLATE "C" NOT NULL CHECK (state IN ('open', 'running', 'done', 'failed')),
  owner          text COLLATE "C" NOT NULL,
  fence          bigint NOT NULL,
  attempts       integer NOT NULL,
  lease_until_ms bigint NOT NULL,
  started_ms     bigint,
  finished_ms    bigint,
  PRIMARY KEY (job, period)
)`,
  ] },
  { version: 8, name: 'stock', statements: [
    `-- Hot stock in segments. At every commit: left + held + settled = total.
CREATE TABLE turngate_stock (
  item       text COLLATE "C" PRIMARY KEY,
  total      bigint NOT NULL CHECK (total >= 0),
  segments   integer NOT NULL,
  generation bigint NOT NULL,
  known_left bigint
)`,
    `CREATE TABLE turngate_stock_segment (
  item       text COLLATE "C" NOT NULL,
  segment    integer NOT NULL,
  units_left bigint NOT NULL CHECK (units_left >= 0),
  PRIMARY KEY (item, segment)
) WITH (fillfactor = 50)`,
    `CREATE TABLE turngate_stock_quota (
  item       text COLLATE "C" NOT NULL,
  holder     text COLLATE "C" NOT NULL,
  units_used bigint NOT NULL CHECK (units_used >= 0),
  PRIMARY KEY (item, holder)
)`,
    `CREATE TABLE turngate_reservation (
  reservation_id text COLLATE "C" PRIMARY KEY,
  item           text COLLATE "C" NOT NULL,
  holder         text COLLATE "C" NOT NULL,
  units          bigint NOT NULL CHECK (units > 0),
  state          text COLLATE "C" NOT NULL CHECK (state IN ('HELD', 'SETTLED', 'RELEASED', 'EXPIRED')),
  token          text COLLATE "C" NOT NULL,
  due_ms         bigint NOT NULL
)`,
    `CREATE INDEX turngate_reservation_due ON turngate_reservation (due_ms) WHERE state = 'HELD'`,
    `CREATE TABLE turngate_reservation_part (
  reservation_id text COLLATE "C" NOT NULL,
  segment        integer NOT NULL,
  units          bigint NOT NULL CHECK (units > 0),
  PRIMARY KEY (reservation_id, segment)
)`,
  ] },
  { version: 9, name: 'messages', statements: [
    `-- Outbox and inbox. A lane is all messages of one key: its row's lock makes order the order of commits.
CREATE TABLE turngate_outbox_lane (
  topic          text COLLATE "C" NOT NULL,
  lane           text COLLATE "C" NOT NULL,
  last_sequence  bigint NOT NULL,
  sent_sequence  bigint NOT NULL,
  owner          text COLLATE "C" NOT NULL,
  lease_until_ms bigint NOT NULL,
  failures       integer NOT NULL,
  PRIMARY KEY (topic, lane)
)`,
    `CREATE INDEX turngate_outbox_lane_waiting ON turngate_outbox_lane (lease_until_ms)
  WHERE last_sequence > sent_sequence`,
    `CREATE TABLE turngate_outbox (
  topic      text COLLATE "C" NOT NULL,
  lane       text COLLATE "C" NOT NULL,
  sequence   bigint NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  payload    text NOT NULL,
  headers    text NOT NULL,
  created_ms bigint NOT NULL,
  parked_ms  bigint,
  PRIMARY KEY (topic, lane, sequence)
)`,
    `CREATE TABLE turngate_inbox (
  consumer    text COLLATE "C" NOT NULL,
  source      text COLLATE "C" NOT NULL,
  message_id  text COLLATE "C" NOT NULL,
  token       text COLLATE "C" NOT NULL,
  consumed_ms bigint NOT NULL,
  PRIMARY KEY (consumer, source, message_id)
)`,
    `CREATE INDEX turngate_inbox_age ON turngate_inbox USING brin (consumed_ms)`,
    `CREATE TABLE turngate_inbox_start (
  consumer      text COLLATE "C" NOT NULL,
  source        text COLLATE "C" NOT NULL,
  message_id    text COLLATE "C" NOT NULL,
  starts        integer NOT NULL,
  first_ms      bigint NOT NULL,
  parked_reason text,
  PRIMARY KEY (consumer, source, message_id)
)`,
  ] },
  { version: 10, name: 'sagas', statements: [
    `-- Branches of global transactions (the barrier), and semantic locks. Sagas themselves are staged operations.
CREATE TABLE turngate_branch (
  gid        text COLLATE "C" NOT NULL,
  branch     text COLLATE "C" NOT NULL,
  state      text COLLATE "C" NOT NULL CHECK (state IN ('TRIED', 'CONFIRMED', 'CANCELLED', 'SUSPENDED')),
  token      text COLLATE "C" NOT NULL,
  digest     text COLLATE "C" NOT NULL,
  first_op   text COLLATE "C" NOT NULL,
  result     text,
  created_ms bigint NOT NULL,
  updated_ms bigint NOT NULL,
  PRIMARY KEY (gid, branch)
)`,
    `CREATE INDEX turngate_branch_age ON turngate_branch USING brin (updated_ms)`,
    `CREATE TABLE turngate_guard (
  resource   text COLLATE "C" PRIMARY KEY,
  saga_id    text COLLATE "C" NOT NULL,
  token      text COLLATE "C" NOT NULL,
  until_ms   bigint NOT NULL
)`,
  ] },
  { version: 11, name: 'tokens', statements: [
    `-- Submit tokens, by a digest of token, operation and subject; vouchers, one row per side action done.
CREATE TABLE turngate_submit_token (
  digest     text COLLATE "C" PRIMARY KEY,
  expires_ms bigint NOT NULL,
  spent_ms   bigint
)`,
    `CREATE INDEX turngate_submit_token_age ON turngate_submit_token USING brin (expires_ms)`,
    `CREATE TABLE turngate_voucher (
  name        text COLLATE "C" NOT NULL,
  voucher_key text COLLATE "C" NOT NULL,
  token       text COLLATE "C" NOT NULL,
  created_ms  bigint NOT NULL,
  PRIMARY KEY (name, voucher_key)
)`,
    `CREATE INDEX turngate_voucher_age ON turngate_voucher USING brin (created_ms)`,
  ] },
  { version: 12, name: 'audit', statements: [
    `-- Who did what by hand to which record, staged operation or lock. Lines are added with the act, in its
-- transaction where both are in this database; an act elsewhere has outcome "asked" until it is settled.
CREATE TABLE turngate_audit (
  id          text COLLATE "C" PRIMARY KEY,
  at_ms       bigint NOT NULL,
  actor       text COLLATE "C" NOT NULL,
  act         text COLLATE "C" NOT NULL,
  target_kind text COLLATE "C" NOT NULL,
  operation   text COLLATE "C" NOT NULL,
  scope       text COLLATE "C" NOT NULL,
  target_key  text COLLATE "C" NOT NULL,
  reason      text NOT NULL,
  detail      text NOT NULL,
  outcome     text COLLATE "C" NOT NULL
)`,
    `CREATE INDEX turngate_audit_time ON turngate_audit (at_ms, id)`,
  ] },
  { version: 13, name: 'single-write', statements: [
    `-- Claim, one declared write and its result in one call: one trip, one commit. The claim comes first,
-- so that a repeat never touches the business row.
CREATE FUNCTION turngate_single_write(
  p_operation text, p_scope text, p_key text, p_fingerprint text, p_owner text,
  p_retention_ms bigint, p_statement text, p_values text[]
) RETURNS TABLE (r_state text, r_fingerprint text, r_owner text, r_result text,
  r_first text, r_expires text, r_live text)
LANGUAGE plpgsql AS $body$
DECLARE
  v_rows text; v_now timestamptz; BEGIN
  v_now := clock_timestamp(); INSERT INTO turngate_record AS r
    (operation, scope, key, state, fingerprint, owner, result, first_processed_at, expires_at)
  VALUES (p_operation, p_scope, p_key, 'done', p_fingerprint, p_owner, '',
    v_now, v_now + p_retention_ms * interval '1 millisecond')
  ON CONFLICT ON CONSTRAINT turngate_record_pkey DO NOTHING; IF FOUND THEN
    EXECUTE 'WITH w AS (' || p_statement || ') SELECT json_agg(w)::text FROM w'
      INTO v_rows USING p_values; IF v_rows IS NULL THEN
      RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'no row was written'; END IF; UPDATE turngate_record
      SET result = '1' || v_rows
      WHERE operation = p_operation AND scope = p_scope AND key = p_key; END IF; RETURN QUERY
    SELECT t.state, t.fingerprint, t.owner, t.result,
      trunc(extract(epoch FROM t.first_processed_at) * 1000)::text,
      trunc(extract(epoch FROM t.expires_at) * 1000)::text,
      (t.expires_at > clock_timestamp())::text
    FROM turngate_record t
    WHERE t.operation = p_operation AND t.scope = p_scope AND t.key = p_key; END
$body$`,
  ] },
  { version: 14, name: 'external-branches', statements: [
    `-- Branches whose effect is outside the database: states while a call is out, lease and fence of the
-- attempt, and when a second cancel is due because a lost try may have landed after the first.
ALTER TABLE turngate_branch
  DROP CONSTRAINT turngate_branch_state_check,
  ADD CONSTRAINT turngate_branch_state_check CHECK (state IN ('TRYING', 'TRIED', 'CONFIRMING', 'CONFIRMED', 'CANCELLING', 'CANCELLED', 'SUSPENDED')),
  ADD COLUMN mode text COLLATE "C" NOT NULL DEFAULT 'local' CHECK (mode IN ('local', 'external')),
  ADD COLUMN fence bigint NOT NULL DEFAULT 0,
  ADD COLUMN lease_until_ms bigint NOT NULL DEFAULT 0,
  ADD COLUMN recancel_ms bigint`,
    `CREATE INDEX turngate_branch_recancel ON turngate_branch (recancel_ms) WHERE recancel_ms IS NOT NULL`,
  ] },
  { version: 15, name: 'lean-tables', statements: [
    `-- What each first call and each branch paid for and nothing used: the clean-up reads records in the
-- order of their blocks and branches by the time in their names; states and names are checked before
-- they are sent. Room in the pages lets a row change in place.
DROP INDEX IF EXISTS turngate_record_expiry`,
    `ALTER TABLE turngate_record
  DROP CONSTRAINT IF EXISTS turngate_record_operation_check,
  DROP CONSTRAINT IF EXISTS turngate_record_scope_check,
  DROP CONSTRAINT IF EXISTS turngate_record_key_check,
  DROP CONSTRAINT IF EXISTS turngate_record_state_check`,
    `DROP INDEX turngate_branch_age`,
    `ALTER TABLE turngate_branch
  DROP CONSTRAINT turngate_branch_state_check,
  DROP CONSTRAINT turngate_branch_mode_check,
  SET (fillfactor = 60)`,
  ] },
];
