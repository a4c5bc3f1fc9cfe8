-- Outbox and inbox. A lane is all messages of one key: its row's lock makes order the order of commits.
CREATE TABLE turngate_outbox_lane (
  topic          text COLLATE "C" NOT NULL,
  lane           text COLLATE "C" NOT NULL,
  last_sequence  bigint NOT NULL,
  sent_sequence  bigint NOT NULL,
  owner          text COLLATE "C" NOT NULL,
  lease_until_ms bigint NOT NULL,
  failures       integer NOT NULL,
  PRIMARY KEY (topic, lane)
);
CREATE INDEX turngate_outbox_lane_waiting ON turngate_outbox_lane (lease_until_ms)
  WHERE last_sequence > sent_sequence;
CREATE TABLE turngate_outbox (
  topic      text COLLATE "C" NOT NULL,
  lane       text COLLATE "C" NOT NULL,
  sequence   bigint NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  payload    text NOT NULL,
  headers    text NOT NULL,
  created_ms bigint NOT NULL,
  parked_ms  bigint,
  PRIMARY KEY (topic, lane, sequence)
);
CREATE TABLE turngate_inbox (
  consumer    text COLLATE "C" NOT NULL,
  source      text COLLATE "C" NOT NULL,
  message_id  text COLLATE "C" NOT NULL,
  token       text COLLATE "C" NOT NULL,
  consumed_ms bigint NOT NULL,
  PRIMARY KEY (consumer, source, message_id)
);
CREATE INDEX turngate_inbox_age ON turngate_inbox USING brin (consumed_ms);
CREATE TABLE turngate_inbox_start (
  consumer      text COLLATE "C" NOT NULL,
  source        text COLLATE "C" NOT NULL,
  message_id    text COLLATE "C" NOT NULL,
  starts        integer NOT NULL,
  first_ms      bigint NOT NULL,
  parked_reason text,
  PRIMARY KEY (consumer, source, message_id)
);
