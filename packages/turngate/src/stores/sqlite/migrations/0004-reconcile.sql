-- Reconciliation: one row per run, per break, per line that waits for its other half.
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
) STRICT, WITHOUT ROWID;
CREATE TABLE turngate_recon_break (
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
) STRICT, WITHOUT ROWID;
CREATE TABLE turngate_recon_pool (
  channel    TEXT NOT NULL,
  side       TEXT NOT NULL,
  line_kind  TEXT NOT NULL,
  line_key   TEXT NOT NULL,
  line_ref   TEXT NOT NULL,
  line       TEXT NOT NULL,
  since_date TEXT NOT NULL,
  PRIMARY KEY (channel, side, line_kind, line_key, line_ref)
) STRICT, WITHOUT ROWID;
CREATE TABLE turngate_recon_left (
  channel       TEXT NOT NULL,
  business_date TEXT NOT NULL,
  side          TEXT NOT NULL,
  line_kind     TEXT NOT NULL,
  line_key      TEXT NOT NULL,
  line_ref      TEXT NOT NULL,
  line          TEXT NOT NULL,
  since_date    TEXT NOT NULL,
  PRIMARY KEY (channel, business_date, side, line_kind, line_key, line_ref)
) STRICT, WITHOUT ROWID;
CREATE TABLE turngate_recon_edge (
  channel       TEXT NOT NULL,
  business_date TEXT NOT NULL,
  edge_key      TEXT NOT NULL,
  PRIMARY KEY (channel, business_date, edge_key)
) STRICT, WITHOUT ROWID;
