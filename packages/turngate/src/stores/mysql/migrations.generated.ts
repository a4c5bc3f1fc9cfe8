/** Generated from migrations/*.sql by scripts/generate.mjs; do not edit. */
import type { Migration } from '../sql/migration.ts';

/** All migrations in order. Released ones are never edited. */
export const migrations: readonly Migration[] = [
  { version: 1, name: 'records', statements: [
    `-- Idempotency records of atomic operations, found by the SHA-256 of their identity. Binary columns: no
-- collation, no padding, no time zone and no connection charset can make two keys one.
CREATE TABLE IF NOT EXISTS turngate_record (
  id                 BINARY(32) NOT NULL,
  operation          VARBINARY(255) NOT NULL,
  scope              VARBINARY(255) NOT NULL,
  record_key         VARBINARY(255) NOT NULL,
  state              VARBINARY(16) NOT NULL,
  fingerprint        VARBINARY(255) NOT NULL,
  owner              VARBINARY(255) NOT NULL,
  result             LONGBLOB NOT NULL,
  first_processed_ms BIGINT NOT NULL,
  expires_ms         BIGINT NOT NULL,
  PRIMARY KEY (id),
  KEY turngate_record_expiry (expires_ms)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`,
  ] },
  { version: 2, name: 'locks', statements: [
    `-- Locks in table mode: one row per name. Rows stay, so that the fence of a name only grows. Free is
-- expires_us = 0 or past; fence_last is the last fence that the newest grant reserved.
CREATE TABLE IF NOT EXISTS turngate_lock (
  id         BINARY(32) NOT NULL,
  name       BLOB NOT NULL,
  owner      VARBINARY(255) NOT NULL,
  fence      BIGINT NOT NULL,
  fence_last BIGINT NOT NULL,
  expires_us BIGINT NOT NULL,
  PRIMARY KEY (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`,
  ] },
  { version: 3, name: 'transitions', statements: [
    `-- History of state machines, written in the transaction that moves the state. Times are UTC.
CREATE TABLE IF NOT EXISTS turngate_transition (
  flow       VARBINARY(64) NOT NULL,
  entity_id  VARBINARY(255) NOT NULL,
  version    BIGINT NOT NULL,
  event      VARBINARY(255) NOT NULL,
  from_state VARBINARY(64) NOT NULL,
  to_state   VARBINARY(64) NOT NULL,
  at         DATETIME(6) NOT NULL,
  PRIMARY KEY (flow, entity_id, version)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`,
  ] },
  { version: 4, name: 'staged', statements: [
    `-- Staged operations: claimed before they run, made of recorded steps, taken over when a lease ends.
-- id is the digest of (operation, scope, record_key). Times are epoch milliseconds of this server`,
    `-- due_at is when somebody else may take the row, and NULL for what is finished or parked.
CREATE TABLE IF NOT EXISTS turngate_staged (
  id          VARBINARY(64) NOT NULL,
  operation   VARBINARY(255) NOT NULL,
  scope       VARBINARY(255) NOT NULL,
  record_key  VARBINARY(255) NOT NULL,
  state       VARBINARY(16) NOT NULL,
  fingerprint VARBINARY(255) NOT NULL,
  input       LONGBLOB NOT NULL,
  owner       VARBINARY(255) NOT NULL,
  attempt     BIGINT NOT NULL,
  failures    INT NOT NULL,
  promised    TINYINT NOT NULL,
  lease_ms    BIGINT NOT NULL,
  due_at      BIGINT,
  result      LONGBLOB,
  error       LONGBLOB,
  started_at  BIGINT NOT NULL,
  expires_at  BIGINT,
  PRIMARY KEY (id),
  KEY turngate_staged_due (due_at),
  KEY turngate_staged_expiry (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`,
    `-- One row per step; written by the hold that did the step, never changed once it has a result.
CREATE TABLE IF NOT EXISTS turngate_step (
  id          VARBINARY(64) NOT NULL,
  name        VARBINARY(400) NOT NULL,
  seq         BIGINT NOT NULL,
  kind        VARBINARY(16) NOT NULL,
  on_unknown  VARBINARY(16) NOT NULL,
  fingerprint VARBINARY(255),
  state       VARBINARY(16) NOT NULL,
  result      LONGBLOB,
  attempt     BIGINT NOT NULL,
  due_at      BIGINT,
  started_at  BIGINT NOT NULL,
  ended_at    BIGINT,
  PRIMARY KEY (id, name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`,
  ] },
  { version: 5, name: 'reconcile', statements: [
    `-- Reconciliation: one row per run, per break, per line that waits for its other half.
CREATE TABLE IF NOT EXISTS turngate_recon_run (
  channel VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  business_date VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (state IN ('open', 'running', 'done')),
  owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  lease_until_ms BIGINT NOT NULL,
  tally LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  after_kind VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  after_key VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  finished_at_ms BIGINT,
  PRIMARY KEY (channel, business_date)
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_recon_break (
  channel VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  line_kind VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line_key VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  amount_minor BIGINT NOT NULL,
  currency VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  detail LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  state VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  first_date VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  last_run VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (channel, line_kind, line_key, code)
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_recon_pool (
  channel VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  side VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  line_kind VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line_key VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line_ref VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  since_date VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (channel, side, line_kind, line_key, line_ref)
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_recon_left (
  channel VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  business_date VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  side VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  line_kind VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line_key VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line_ref VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  since_date VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (channel, business_date, side, line_kind, line_key, line_ref)
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_recon_edge (
  channel VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  business_date VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  edge_key VARCHAR(232) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (channel, business_date, edge_key)
) ENGINE = InnoDB`,
  ] },
  { version: 6, name: 'jobs', statements: [
    `-- Jobs: one row per (job, period), so that a second trigger of the same period finds it taken.
CREATE TABLE IF NOT EXISTS turngate_job (
  job VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  since_ms BIGINT NOT NULL
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_job_run (
  job VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  period VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  due_ms         BIGINT NOT NULL,
  state VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (state IN ('open', 'running', 'done', 'failed')),
  owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  fence          BIGINT NOT NULL,
  attempts       INT NOT NULL,
  lease_until_ms BIGINT NOT NULL,
  started_ms     BIGINT,
  finished_ms    BIGINT,
  PRIMARY KEY (job, period)
) ENGINE = InnoDB`,
  ] },
  { version: 7, name: 'stock', statements: [
    `-- Hot stock in segments. At every commit: left + held + settled = total.
CREATE TABLE IF NOT EXISTS turngate_stock (
  item VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  total      BIGINT NOT NULL CHECK (total >= 0),
  segments   INT NOT NULL,
  generation BIGINT NOT NULL,
  known_left BIGINT
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_stock_segment (
  item VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  segment    INT NOT NULL,
  units_left BIGINT NOT NULL CHECK (units_left >= 0),
  PRIMARY KEY (item, segment)
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_stock_quota (
  item VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  holder VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  units_used BIGINT NOT NULL CHECK (units_used >= 0),
  PRIMARY KEY (item, holder)
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_reservation (
  reservation_id VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  item VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  holder VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  units          BIGINT NOT NULL CHECK (units > 0),
  state VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (state IN ('HELD', 'SETTLED', 'RELEASED', 'EXPIRED')),
  token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  due_ms         BIGINT NOT NULL
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_reservation_part (
  reservation_id VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  segment        INT NOT NULL,
  units          BIGINT NOT NULL CHECK (units > 0),
  PRIMARY KEY (reservation_id, segment)
) ENGINE = InnoDB`,
    `CREATE INDEX turngate_reservation_due ON turngate_reservation (state, due_ms)`,
  ] },
  { version: 8, name: 'messages', statements: [
    `-- Outbox and inbox. A lane is all messages of one key: its row's lock makes order the order of commits.
CREATE TABLE IF NOT EXISTS turngate_outbox_lane (
  topic VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  lane VARCHAR(210) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  last_sequence  BIGINT NOT NULL,
  sent_sequence  BIGINT NOT NULL,
  owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  lease_until_ms BIGINT NOT NULL,
  failures       INT NOT NULL,
  PRIMARY KEY (topic, lane)
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_outbox (
  topic VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  lane VARCHAR(210) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  sequence   BIGINT NOT NULL,
  message_id VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payload LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  headers LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_ms BIGINT NOT NULL,
  parked_ms  BIGINT,
  PRIMARY KEY (topic, lane, sequence)
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_inbox (
  consumer VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  source VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  message_id VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  consumed_ms BIGINT NOT NULL,
  PRIMARY KEY (consumer, source, message_id)
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_inbox_start (
  consumer VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  source VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  message_id VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  starts        INT NOT NULL,
  first_ms      BIGINT NOT NULL,
  parked_reason LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  PRIMARY KEY (consumer, source, message_id)
) ENGINE = InnoDB`,
    `CREATE INDEX turngate_outbox_lane_waiting ON turngate_outbox_lane (lease_until_ms)`,
    `CREATE INDEX turngate_inbox_age ON turngate_inbox (consumed_ms)`,
  ] },
  { version: 9, name: 'sagas', statements: [
    `-- Branches of global transactions (the barrier), and semantic locks. Sagas themselves are staged operations.
CREATE TABLE IF NOT EXISTS turngate_branch (
  gid VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  branch VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (state IN ('TRIED', 'CONFIRMED', 'CANCELLED', 'SUSPENDED')),
  token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  first_op VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  result LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  created_ms BIGINT NOT NULL,
  updated_ms BIGINT NOT NULL,
  PRIMARY KEY (gid, branch)
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_guard (
  resource VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  saga_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  until_ms   BIGINT NOT NULL
) ENGINE = InnoDB`,
    `CREATE INDEX turngate_branch_age ON turngate_branch (updated_ms)`,
  ] },
  { version: 10, name: 'tokens', statements: [
    `-- Submit tokens, by a digest of token, operation and subject; vouchers, one row per side action done.
CREATE TABLE IF NOT EXISTS turngate_submit_token (
  digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  expires_ms BIGINT NOT NULL,
  spent_ms BIGINT,
  KEY turngate_submit_token_age (expires_ms)
) ENGINE = InnoDB`,
    `CREATE TABLE IF NOT EXISTS turngate_voucher (
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  voucher_key VARBINARY(255) NOT NULL,
  token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_ms BIGINT NOT NULL,
  PRIMARY KEY (name, voucher_key),
  KEY turngate_voucher_age (created_ms)
) ENGINE = InnoDB`,
  ] },
  { version: 11, name: 'audit', statements: [
    `-- Who did what by hand to which record, staged operation or lock. Lines are added with the act, in its
-- transaction where both are in this database; an act elsewhere has outcome "asked" until it is settled.
CREATE TABLE IF NOT EXISTS turngate_audit (
  id          VARBINARY(64) NOT NULL,
  at_ms       BIGINT NOT NULL,
  actor       VARBINARY(255) NOT NULL,
  act         VARBINARY(64) NOT NULL,
  target_kind VARBINARY(16) NOT NULL,
  operation   VARBINARY(255) NOT NULL,
  scope       VARBINARY(255) NOT NULL,
  target_key  VARBINARY(1024) NOT NULL,
  reason      BLOB NOT NULL,
  detail      BLOB NOT NULL,
  outcome     VARBINARY(16) NOT NULL,
  PRIMARY KEY (id),
  KEY turngate_audit_time (at_ms, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`,
  ] },
  { version: 12, name: 'single-write', statements: [
    `-- Claim, one declared write and its result in one call. The claim comes first, so that a repeat never
-- touches the business row; the write must touch exactly one row, so its result is known beforehand.
DROP PROCEDURE IF EXISTS turngate_single_write`,
    `CREATE PROCEDURE turngate_single_write(
  IN p_id BINARY(32), IN p_operation VARBINARY(255), IN p_scope VARBINARY(255),
  IN p_key VARBINARY(255), IN p_fingerprint VARBINARY(255), IN p_owner VARBINARY(255),
  IN p_retention_ms BIGINT, IN p_result LONGBLOB, IN p_statement LONGTEXT CHARACTER SET utf8mb4)
MODIFIES SQL DATA
BEGIN
  DECLARE v_known INT DEFAULT 0; DECLARE v_rows INT DEFAULT 1; DECLARE v_now BIGINT; DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
    ROLLBACK; RESIGNAL; END; START TRANSACTION; SET v_now = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000); BEGIN
    DECLARE CONTINUE HANDLER FOR 1062 SET v_known = 1; INSERT INTO turngate_record (id, operation, scope, record_key, state, fingerprint, owner,
      result, first_processed_ms, expires_ms)
    VALUES (p_id, p_operation, p_scope, p_key, 'done', p_fingerprint, p_owner, p_result,
      v_now, v_now + p_retention_ms); END; IF v_known = 0 THEN
    SET @turngate_write = p_statement; PREPARE turngate_write FROM @turngate_write; EXECUTE turngate_write; SET v_rows = ROW_COUNT(); DEALLOCATE PREPARE turngate_write; END IF; IF v_known = 0 AND v_rows = 1 THEN COMMIT; ELSE ROLLBACK; END IF; SELECT IF(v_rows = 1, 'kept', 'nothing') AS outcome, v_now AS now_ms, r.state, r.fingerprint,
      r.owner, r.result, r.first_processed_ms, r.expires_ms
    FROM (SELECT 1 AS one) AS o LEFT JOIN turngate_record AS r ON r.id = p_id; END`,
  ] },
  { version: 13, name: 'external-branches', statements: [
    `-- Branches whose effect is outside the database: states while a call is out, lease and fence of the
-- attempt, and when a second cancel is due because a lost try may have landed after the first. One
-- statement, looked up first, so that it can be repeated. On MariaDB the old check goes with MODIFY.
SET @turngate_alter = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'turngate_branch' AND column_name = 'recancel_ms') > 0,
  'DO 0',
  'ALTER TABLE turngate_branch
    /*!80016 DROP CHECK turngate_branch_chk_1, */
    MODIFY state VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    ADD CONSTRAINT turngate_branch_state CHECK (state IN (''TRYING'', ''TRIED'', ''CONFIRMING'', ''CONFIRMED'', ''CANCELLING'', ''CANCELLED'', ''SUSPENDED'')),
    ADD COLUMN mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''local'',
    ADD COLUMN fence BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN lease_until_ms BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN recancel_ms BIGINT,
    ADD INDEX turngate_branch_recancel (recancel_ms)')`,
    `PREPARE turngate_alter FROM @turngate_alter`,
    `EXECUTE turngate_alter`,
    `DEALLOCATE PREPARE turngate_alter`,
  ] },
  { version: 14, name: 'single-write-literals', statements: [
    `-- The same procedure, which now reads the texts of the statement and the values in it in one collation:
-- values are literals, so that the columns they meet decide and their indexes are used.
DROP PROCEDURE IF EXISTS turngate_single_write`,
    `CREATE PROCEDURE turngate_single_write(
  IN p_id BINARY(32), IN p_operation VARBINARY(255), IN p_scope VARBINARY(255),
  IN p_key VARBINARY(255), IN p_fingerprint VARBINARY(255), IN p_owner VARBINARY(255),
  IN p_retention_ms BIGINT, IN p_result LONGBLOB, IN p_statement LONGTEXT CHARACTER SET utf8mb4)
MODIFIES SQL DATA
BEGIN
  DECLARE v_known INT DEFAULT 0; DECLARE v_rows INT DEFAULT 1; DECLARE v_now BIGINT; DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
    ROLLBACK; RESIGNAL; END; SET character_set_client = utf8mb4, character_set_connection = utf8mb4; START TRANSACTION; SET v_now = (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000); BEGIN
    DECLARE CONTINUE HANDLER FOR 1062 SET v_known = 1; INSERT INTO turngate_record (id, operation, scope, record_key, state, fingerprint, owner,
      result, first_processed_ms, expires_ms)
    VALUES (p_id, p_operation, p_scope, p_key, 'done', p_fingerprint, p_owner, p_result,
      v_now, v_now + p_retention_ms); END; IF v_known = 0 THEN
    SET @turngate_write = p_statement; PREPARE turngate_write FROM @turngate_write; EXECUTE turngate_write; SET v_rows = ROW_COUNT(); DEALLOCATE PREPARE turngate_write; END IF; IF v_known = 0 AND v_rows = 1 THEN COMMIT; ELSE ROLLBACK; END IF; SELECT IF(v_rows = 1, 'kept', 'nothing') AS outcome, v_now AS now_ms, r.state, r.fingerprint,
      r.owner, r.result, r.first_processed_ms, r.expires_ms
    FROM (SELECT 1 AS one) AS o LEFT JOIN turngate_record AS r ON r.id = p_id; END`,
  ] },
  { version: 15, name: 'lean-branches', statements: [
    `-- Clean-up reads branches by the time in their names: an index by their last change only cost time.
SET @turngate_alter = IF((SELECT COUNT(*) FROM information_schema.statistics
    WHERE table_schema = DATABASE() AND table_name = 'turngate_branch' AND index_name = 'turngate_branch_age') = 0,
  'DO 0',
  'ALTER TABLE turngate_branch DROP INDEX turngate_branch_age')`,
    `PREPARE turngate_alter FROM @turngate_alter`,
    `EXECUTE turngate_alter`,
    `DEALLOCATE PREPARE turngate_alter`,
  ] },
];
