-- Hot stock in segments. At every commit: left + held + settled = total.
CREATE TABLE IF NOT EXISTS turngate_stock (
  item VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  total      BIGINT NOT NULL CHECK (total >= 0),
  segments   INT NOT NULL,
  generation BIGINT NOT NULL,
  known_left BIGINT
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_stock_segment (
  item VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  segment    INT NOT NULL,
  units_left BIGINT NOT NULL CHECK (units_left >= 0),
  PRIMARY KEY (item, segment)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_stock_quota (
  item VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  holder VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  units_used BIGINT NOT NULL CHECK (units_used >= 0),
  PRIMARY KEY (item, holder)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_reservation (
  reservation_id VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  item VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  holder VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  units          BIGINT NOT NULL CHECK (units > 0),
  state VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (state IN ('HELD', 'SETTLED', 'RELEASED', 'EXPIRED')),
  token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  due_ms         BIGINT NOT NULL
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_reservation_part (
  reservation_id VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  segment        INT NOT NULL,
  units          BIGINT NOT NULL CHECK (units > 0),
  PRIMARY KEY (reservation_id, segment)
) ENGINE = InnoDB;
CREATE INDEX turngate_reservation_due ON turngate_reservation (state, due_ms);
