-- Staged operations: claimed before they run, made of recorded steps, taken over when a lease ends.
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
) STRICT, WITHOUT ROWID;
-- Only what is unfinished has a due time, so the sweeper's index stays as small as the work in hand.
CREATE INDEX turngate_staged_due ON turngate_staged (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX turngate_staged_expiry ON turngate_staged (expires_at);
-- One row per step; written by the hold that did the step, never changed once it has a result.
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
) STRICT, WITHOUT ROWID;
