-- History of state machines, written by the statement that moves the state.
CREATE TABLE turngate_transition (
  flow       text COLLATE "C" NOT NULL,
  entity_id  text COLLATE "C" NOT NULL,
  version    bigint NOT NULL,
  event      text COLLATE "C" NOT NULL,
  from_state text COLLATE "C" NOT NULL,
  to_state   text COLLATE "C" NOT NULL,
  at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (flow, entity_id, version)
);
