-- Staged operations: claimed before they run, made of recorded steps, taken over when a lease ends.
-- id is the digest of (operation, scope, record_key). Times are epoch milliseconds of this server, so
-- that one set of statements serves every dialect; due_at is when somebody else may take the row.
CREATE TABLE turngate_staged (
  id          text COLLATE "C" PRIMARY KEY,
  operation   text COLLATE "C" NOT NULL CHECK (operation <> ''),
  scope       text COLLATE "C" NOT NULL CHECK (scope <> ''),
  record_key  text COLLATE "C" NOT NULL CHECK (record_key <> ''),
  state       text COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'running', 'sleeping',
    'released', 'indeterminate', 'parked', 'done', 'refused')),
  fingerprint text COLLATE "C" NOT NULL,
  input       text NOT NULL,
  owner       text COLLATE "C" NOT NULL,
  attempt     bigint NOT NULL,
  failures    integer NOT NULL,
  promised    smallint NOT NULL,
  lease_ms    bigint NOT NULL,
  due_at      bigint,
  result      text,
  error       text,
  started_at  bigint NOT NULL,
  expires_at  bigint
) WITH (fillfactor = 70);
-- Only what is unfinished has a due time, so the sweeper's index stays as small as the work in hand.
CREATE INDEX turngate_staged_due ON turngate_staged (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX turngate_staged_expiry ON turngate_staged USING brin (expires_at) WITH (autosummarize = on);
-- One row per step; written by the hold that did the step, never changed once it has a result.
CREATE TABLE turngate_step (
  id          text COLLATE "C" NOT NULL,
  name        text COLLATE "C" NOT NULL CHECK (name <> ''),
  seq         bigint NOT NULL,
  kind        text COLLATE "C" NOT NULL,
  on_unknown  text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C",
  state       text COLLATE "C" NOT NULL CHECK (state IN ('started', 'done', 'refused')),
  result      text,
  attempt     bigint NOT NULL,
  due_at      bigint,
  started_at  bigint NOT NULL,
  ended_at    bigint,
  PRIMARY KEY (id, name)
);
