-- Reconciliation: one row per run, per break, per line that waits for its other half.
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
);
CREATE TABLE turngate_recon_break (
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
);
CREATE TABLE turngate_recon_pool (
  channel    text COLLATE "C" NOT NULL,
  side       text COLLATE "C" NOT NULL,
  line_kind  text COLLATE "C" NOT NULL,
  line_key   text COLLATE "C" NOT NULL,
  line_ref   text COLLATE "C" NOT NULL,
  line       text NOT NULL,
  since_date text COLLATE "C" NOT NULL,
  PRIMARY KEY (channel, side, line_kind, line_key, line_ref)
);
CREATE TABLE turngate_recon_left (
  channel       text COLLATE "C" NOT NULL,
  business_date text COLLATE "C" NOT NULL,
  side          text COLLATE "C" NOT NULL,
  line_kind     text COLLATE "C" NOT NULL,
  line_key      text COLLATE "C" NOT NULL,
  line_ref      text COLLATE "C" NOT NULL,
  line          text NOT NULL,
  since_date    text COLLATE "C" NOT NULL,
  PRIMARY KEY (channel, business_date, side, line_kind, line_key, line_ref)
);
CREATE TABLE turngate_recon_edge (
  channel       text COLLATE "C" NOT NULL,
  business_date text COLLATE "C" NOT NULL,
  edge_key      text COLLATE "C" NOT NULL,
  PRIMARY KEY (channel, business_date, edge_key)
);
