-- Who did what by hand to which record, staged operation or lock. Lines are added with the act, in its
-- transaction where both are in this database; an act elsewhere has outcome "asked" until it is settled.
CREATE TABLE turngate_audit (
  id          TEXT NOT NULL PRIMARY KEY,
  at_ms       INTEGER NOT NULL,
  actor       TEXT NOT NULL,
  act         TEXT NOT NULL,
  target_kind TEXT NOT NULL,
  operation   TEXT NOT NULL,
  scope       TEXT NOT NULL,
  target_key  TEXT NOT NULL,
  reason      TEXT NOT NULL,
  detail      TEXT NOT NULL,
  outcome     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX turngate_audit_time ON turngate_audit (at_ms, id);
