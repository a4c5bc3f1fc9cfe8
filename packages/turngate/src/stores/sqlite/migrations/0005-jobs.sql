-- Jobs: one row per (job, period), so that a second trigger of the same period finds it taken.
CREATE TABLE turngate_job (
  job      TEXT NOT NULL PRIMARY KEY,
  since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE turngate_job_run (
  job            TEXT NOT NULL,
  period         TEXT NOT NULL,
  due_ms         INTEGER NOT NULL,
  state          TEXT NOT NULL CHECK (state IN ('open', 'running', 'done', 'failed')),
  owner          TEXT NOT NULL,
  fence          INTEGER NOT NULL,
  attempts       INTEGER NOT NULL,
  lease_until_ms INTEGER NOT NULL,
  started_ms     INTEGER,
  finished_ms    INTEGER,
  PRIMARY KEY (job, period)
) STRICT, WITHOUT ROWID;
