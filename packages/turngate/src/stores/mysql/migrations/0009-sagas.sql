-- Branches of global transactions (the barrier), and semantic locks. Sagas themselves are staged operations.
CREATE TABLE IF NOT EXISTS turngate_branch (
  gid VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  branch VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (state IN ('TRIED', 'CONFIRMED', 'CANCELLED', 'SUSPENDED')),
  token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  first_op VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  result LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  created_ms BIGINT NOT NULL,
  updated_ms BIGINT NOT NULL,
  PRIMARY KEY (gid, branch)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS turngate_guard (
  resource VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  saga_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  until_ms   BIGINT NOT NULL
) ENGINE = InnoDB;
CREATE INDEX turngate_branch_age ON turngate_branch (updated_ms);
