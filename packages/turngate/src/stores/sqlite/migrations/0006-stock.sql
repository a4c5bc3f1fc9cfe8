-- Hot stock in segments. At every commit: left + held + settled = total.
CREATE TABLE turngate_stock (
  item       TEXT NOT NULL PRIMARY KEY,
  total      INTEGER NOT NULL CHECK (total >= 0),
  segments   INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  known_left INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE turngate_stock_segment (
  item       TEXT NOT NULL,
  segment    INTEGER NOT NULL,
  units_left INTEGER NOT NULL CHECK (units_left >= 0),
  PRIMARY KEY (item, segment)
) STRICT, WITHOUT ROWID;
CREATE TABLE turngate_stock_quota (
  item       TEXT NOT NULL,
  holder     TEXT NOT NULL,
  units_used INTEGER NOT NULL CHECK (units_used >= 0),
  PRIMARY KEY (item, holder)
) STRICT, WITHOUT ROWID;
CREATE TABLE turngate_reservation (
  reservation_id TEXT NOT NULL PRIMARY KEY,
  item           TEXT NOT NULL,
  holder         TEXT NOT NULL,
  units          INTEGER NOT NULL CHECK (units > 0),
  state          TEXT NOT NULL CHECK (state IN ('HELD', 'SETTLED', 'RELEASED', 'EXPIRED')),
  token          TEXT NOT NULL,
  due_ms         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX turngate_reservation_due ON turngate_reservation (due_ms) WHERE state = 'HELD';
CREATE TABLE turngate_reservation_part (
  reservation_id TEXT NOT NULL,
  segment        INTEGER NOT NULL,
  units          INTEGER NOT NULL CHECK (units > 0),
  PRIMARY KEY (reservation_id, segment)
) STRICT, WITHOUT ROWID;
