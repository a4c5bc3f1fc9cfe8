-- Reconciliation: one row per run, per break, per line that waits for its other half.
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
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_recon_break (
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
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_recon_pool (
  channel VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  side VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  line_kind VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line_key VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line_ref VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  since_date VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (channel, side, line_kind, line_key, line_ref)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_recon_left (
  channel VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  business_date VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  side VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  line_kind VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line_key VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line_ref VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  line LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  since_date VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (channel, business_date, side, line_kind, line_key, line_ref)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_recon_edge (
  channel VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  business_date VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  edge_key VARCHAR(232) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (channel, business_date, edge_key)
) ENGINE = InnoDB;
