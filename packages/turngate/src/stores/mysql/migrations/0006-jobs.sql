-- Jobs: one row per (job, period), so that a second trigger of the same period finds it taken.
CREATE TABLE IF NOT EXISTS turngate_job (
  job VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  since_ms BIGINT NOT NULL
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_job_run (
  job VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  period VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  due_ms         BIGINT NOT NULL,
  state VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (state IN ('open', 'running', 'done', 'failed')),
  owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  fence          BIGINT NOT NULL,
  attempts       INT NOT NULL,
  lease_until_ms BIGINT NOT NULL,
  started_ms     BIGINT,
  finished_ms    BIGINT,
  PRIMARY KEY (job, period)
) ENGINE = InnoDB;
