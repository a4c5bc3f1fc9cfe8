-- Who did what by hand to which record, staged operation or lock. Lines are added with the act, in its
-- transaction where both are in this database; an act elsewhere has outcome "asked" until it is settled.
CREATE TABLE turngate_audit (
  id          text COLLATE "C" PRIMARY KEY,
  at_ms       bigint NOT NULL,
  actor       text COLLATE "C" NOT NULL,
  act         text COLLATE "C" NOT NULL,
  target_kind text COLLATE "C" NOT NULL,
  operation   text COLLATE "C" NOT NULL,
  scope       text COLLATE "C" NOT NULL,
  target_key  text COLLATE "C" NOT NULL,
  reason      text NOT NULL,
  detail      text NOT NULL,
  outcome     text COLLATE "C" NOT NULL
);
CREATE INDEX turngate_audit_time ON turngate_audit (at_ms, id);
