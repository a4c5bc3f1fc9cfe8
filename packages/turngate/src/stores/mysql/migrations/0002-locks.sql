-- Locks in table mode: one row per name. Rows stay, so that the fence of a name only grows. Free is
-- expires_us = 0 or past; fence_last is the last fence that the newest grant reserved.
CREATE TABLE IF NOT EXISTS turngate_lock (
  id         BINARY(32) NOT NULL,
  name       BLOB NOT NULL,
  owner      VARBINARY(255) NOT NULL,
  fence      BIGINT NOT NULL,
  fence_last BIGINT NOT NULL,
  expires_us BIGINT NOT NULL,
  PRIMARY KEY (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
