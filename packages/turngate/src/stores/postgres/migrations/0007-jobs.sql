-- Jobs: one row per (job, period), so that a second trigger of the same period finds it taken.
CREATE TABLE turngate_job (
  job      text COLLATE "C" PRIMARY KEY,
  since_ms bigint NOT NULL
);
CREATE TABLE turngate_job_run (
  job            text COLLATE "C" NOT NULL,
  period         text COLLATE "C" NOT NULL,
  due_ms         bigint NOT NULL,
  state          text COLLATE "C" NOT NULL CHECK (state IN ('open', 'running', 'done', 'failed')),
  owner          text COLLATE "C" NOT NULL,
  fence          bigint NOT NULL,
  attempts       integer NOT NULL,
  lease_until_ms bigint NOT NULL,
  started_ms     bigint,
  finished_ms    bigint,
  PRIMARY KEY (job, period)
);
