-- History of state machines, written in the transaction that moves the state. Times are UTC.
CREATE TABLE IF NOT EXISTS turngate_transition (
  flow       VARBINARY(64) NOT NULL,
  entity_id  VARBINARY(255) NOT NULL,
  version    BIGINT NOT NULL,
  event      VARBINARY(255) NOT NULL,
  from_state VARBINARY(64) NOT NULL,
  to_state   VARBINARY(64) NOT NULL,
  at         DATETIME(6) NOT NULL,
  PRIMARY KEY (flow, entity_id, version)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
