-- Outbox and inbox. A lane is all messages of one key: its row's lock makes order the order of commits.
CREATE TABLE IF NOT EXISTS turngate_outbox_lane (
  topic VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  lane VARCHAR(210) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  last_sequence  BIGINT NOT NULL,
  sent_sequence  BIGINT NOT NULL,
  owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  lease_until_ms BIGINT NOT NULL,
  failures       INT NOT NULL,
  PRIMARY KEY (topic, lane)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_outbox (
  topic VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  lane VARCHAR(210) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  sequence   BIGINT NOT NULL,
  message_id VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payload LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  headers LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_ms BIGINT NOT NULL,
  parked_ms  BIGINT,
  PRIMARY KEY (topic, lane, sequence)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_inbox (
  consumer VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  source VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  message_id VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  consumed_ms BIGINT NOT NULL,
  PRIMARY KEY (consumer, source, message_id)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_inbox_start (
  consumer VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  source VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  message_id VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  starts        INT NOT NULL,
  first_ms      BIGINT NOT NULL,
  parked_reason LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  PRIMARY KEY (consumer, source, message_id)
) ENGINE = InnoDB;
CREATE INDEX turngate_outbox_lane_waiting ON turngate_outbox_lane (lease_until_ms);
CREATE INDEX turngate_inbox_age ON turngate_inbox (consumed_ms);
