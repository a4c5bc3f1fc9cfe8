-- Branches whose effect is outside the database: states while a call is out, lease and fence of the
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
) STRICT, WITHOUT ROWID;
INSERT INTO turngate_branch_new (gid, branch, state, token, digest, first_op, result, created_ms, updated_ms)
  SELECT gid, branch, state, token, digest, first_op, result, created_ms, updated_ms FROM turngate_branch;
DROP TABLE turngate_branch;
ALTER TABLE turngate_branch_new RENAME TO turngate_branch;
CREATE INDEX turngate_branch_age ON turngate_branch (updated_ms);
CREATE INDEX turngate_branch_recancel ON turngate_branch (recancel_ms) WHERE recancel_ms IS NOT NULL;
