-- Who did what by hand to which record, staged operation or lock. Lines are added with the act, in its
-- transaction where both are in this database; an act elsewhere has outcome "asked" until it is settled.
CREATE TABLE IF NOT EXISTS turngate_audit (
  id          VARBINARY(64) NOT NULL,
  at_ms       BIGINT NOT NULL,
  actor       VARBINARY(255) NOT NULL,
  act         VARBINARY(64) NOT NULL,
  target_kind VARBINARY(16) NOT NULL,
  operation   VARBINARY(255) NOT NULL,
  scope       VARBINARY(255) NOT NULL,
  target_key  VARBINARY(1024) NOT NULL,
  reason      BLOB NOT NULL,
  detail      BLOB NOT NULL,
  outcome     VARBINARY(16) NOT NULL,
  PRIMARY KEY (id),
  KEY turngate_audit_time (at_ms, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
