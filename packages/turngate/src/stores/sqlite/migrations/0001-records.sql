-- Idempotency records of atomic operations. STRICT and NOT NULL: a TEXT PRIMARY KEY alone takes NULLs,
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
) STRICT, WITHOUT ROWID;
CREATE INDEX turngate_record_expiry ON turngate_record (expires_ms);
