-- Idempotency records of atomic operations, found by the SHA-256 of their identity. Binary columns: no
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
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
