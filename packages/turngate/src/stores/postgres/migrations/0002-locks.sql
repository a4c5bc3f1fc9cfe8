-- Locks in table mode: one row per name. Rows stay, so that the fence of a name only grows.
-- fillfactor leaves room for in-page (HOT) updates: every grant and renewal is one.
CREATE TABLE turngate_lock (
  name       text COLLATE "C" PRIMARY KEY CHECK (name <> ''),
  owner      text COLLATE "C",
  fence      bigint NOT NULL,
  expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);
