-- Branches of global transactions (the barrier), and semantic locks. Sagas themselves are staged operations.
CREATE TABLE turngate_branch (
  gid        text COLLATE "C" NOT NULL,
  branch     text COLLATE "C" NOT NULL,
  state      text COLLATE "C" NOT NULL CHECK (state IN ('TRIED', 'CONFIRMED', 'CANCELLED', 'SUSPENDED')),
  token      text COLLATE "C" NOT NULL,
  digest     text COLLATE "C" NOT NULL,
  first_op   text COLLATE "C" NOT NULL,
  result     text,
  created_ms bigint NOT NULL,
  updated_ms bigint NOT NULL,
  PRIMARY KEY (gid, branch)
);
CREATE INDEX turngate_branch_age ON turngate_branch USING brin (updated_ms);
CREATE TABLE turngate_guard (
  resource   text COLLATE "C" PRIMARY KEY,
  saga_id    text COLLATE "C" NOT NULL,
  token      text COLLATE "C" NOT NULL,
  until_ms   bigint NOT NULL
);
