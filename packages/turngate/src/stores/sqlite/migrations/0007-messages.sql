-- Outbox and inbox. A lane is all messages of one key: its row's lock makes order the order of commits.
CREATE TABLE turngate_outbox_lane (
  topic          TEXT NOT NULL,
  lane           TEXT NOT NULL,
  last_sequence  INTEGER NOT NULL,
  sent_sequence  INTEGER NOT NULL,
  owner          TEXT NOT NULL,
  lease_until_ms INTEGER NOT NULL,
  failures       INTEGER NOT NULL,
  PRIMARY KEY (topic, lane)
) STRICT, WITHOUT ROWID;
CREATE INDEX turngate_outbox_lane_waiting ON turngate_outbox_lane (lease_until_ms)
  WHERE last_sequence > sent_sequence;
CREATE TABLE turngate_outbox (
  topic      TEXT NOT NULL,
  lane       TEXT NOT NULL,
  sequence   INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  payload    TEXT NOT NULL,
  headers    TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  parked_ms  INTEGER,
  PRIMARY KEY (topic, lane, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE turngate_inbox (
  consumer    TEXT NOT NULL,
  source      TEXT NOT NULL,
  message_id  TEXT NOT NULL,
  token       TEXT NOT NULL,
  consumed_ms INTEGER NOT NULL,
  PRIMARY KEY (consumer, source, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX turngate_inbox_age ON turngate_inbox (consumed_ms);
CREATE TABLE turngate_inbox_start (
  consumer      TEXT NOT NULL,
  source        TEXT NOT NULL,
  message_id    TEXT NOT NULL,
  starts        INTEGER NOT NULL,
  first_ms      INTEGER NOT NULL,
  parked_reason TEXT,
  PRIMARY KEY (consumer, source, message_id)
) STRICT, WITHOUT ROWID;
