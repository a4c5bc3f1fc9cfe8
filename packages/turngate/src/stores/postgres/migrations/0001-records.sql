-- Idempotency records of atomic operations. A row is written once, with the effect, and never updated.
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
);
-- BRIN: rows arrive in time order, so a few bytes per block find the expired ones; a B-tree here
-- would cost every first call a second index insert.
CREATE INDEX turngate_record_expiry ON turngate_record USING brin (expires_at) WITH (autosummarize = on);
