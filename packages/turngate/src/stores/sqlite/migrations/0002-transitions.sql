-- History of state machines, written in the transaction that moves the state. Times are UTC.
CREATE TABLE turngate_transition (
  flow       TEXT NOT NULL,
  entity_id  TEXT NOT NULL,
  version    INTEGER NOT NULL,
  event      TEXT NOT NULL,
  from_state TEXT NOT NULL,
  to_state   TEXT NOT NULL,
  at         TEXT NOT NULL,
  PRIMARY KEY (flow, entity_id, version)
) STRICT, WITHOUT ROWID;
