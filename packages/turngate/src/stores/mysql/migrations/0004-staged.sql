-- Staged operations: claimed before they run, made of recorded steps, taken over when a lease ends.
-- id is the digest of (operation, scope, record_key). Times are epoch milliseconds of this server;
-- due_at is when somebody else may take the row, and NULL for what is finished or parked.
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
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
-- One row per step; written by the hold that did the step, never changed once it has a result.
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
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
