-- Branches of global transactions (the barrier), and semantic locks. Sagas themselves are staged operations.
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
) STRICT, WITHOUT ROWID;
CREATE INDEX turngate_branch_age ON turngate_branch (updated_ms);
CREATE TABLE turngate_guard (
  resource   TEXT NOT NULL PRIMARY KEY,
  saga_id    TEXT NOT NULL,
  token      TEXT NOT NULL,
  until_ms   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
