-- Hot stock in segments. At every commit: left + held + settled = total.
CREATE TABLE turngate_stock (
  item       text COLLATE "C" PRIMARY KEY,
  total      bigint NOT NULL CHECK (total >= 0),
  segments   integer NOT NULL,
  generation bigint NOT NULL,
  known_left bigint
);
CREATE TABLE turngate_stock_segment (
  item       text COLLATE "C" NOT NULL,
  segment    integer NOT NULL,
  units_left bigint NOT NULL CHECK (units_left >= 0),
  PRIMARY KEY (item, segment)
) WITH (fillfactor = 50);
CREATE TABLE turngate_stock_quota (
  item       text COLLATE "C" NOT NULL,
  holder     text COLLATE "C" NOT NULL,
  units_used bigint NOT NULL CHECK (units_used >= 0),
  PRIMARY KEY (item, holder)
);
CREATE TABLE turngate_reservation (
  reservation_id text COLLATE "C" PRIMARY KEY,
  item           text COLLATE "C" NOT NULL,
  holder         text COLLATE "C" NOT NULL,
  units          bigint NOT NULL CHECK (units > 0),
  state          text COLLATE "C" NOT NULL CHECK (state IN ('HELD', 'SETTLED', 'RELEASED', 'EXPIRED')),
  token          text COLLATE "C" NOT NULL,
  due_ms         bigint NOT NULL
);
CREATE INDEX turngate_reservation_due ON turngate_reservation (due_ms) WHERE state = 'HELD';
CREATE TABLE turngate_reservation_part (
  reservation_id text COLLATE "C" NOT NULL,
  segment        integer NOT NULL,
  units          bigint NOT NULL CHECK (units > 0),
  PRIMARY KEY (reservation_id, segment)
);
