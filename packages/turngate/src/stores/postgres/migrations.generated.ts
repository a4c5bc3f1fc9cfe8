/** Generated from migrations/*.sql by scripts/generate.mjs; do not edit. */
import type { Migration } from '../sql/migration.ts';

/** All migrations in order. Released ones are never edited. */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: 'records',
    statements: [
      `-- Idempotency records of atomic operations. A row is written once, with the effect, and never updated.
-- COLLATE "C": keys compare byte by byte, whatever the database's locale.
CREATE TABLE turngate_record (
  operation          text COLLATE "C" NOT NULL CHECK (operation <> ''),
  scope              text COLLATE "C" NOT NULL CHECK (scope <> ''),
  key                text COLLATE "C" NOT NULL CHECK (key <> ''),
  state              text COLLATE "C" NOT NULL CHECK (state IN ('done', 'refused')),
  fingerprint        text COLLATE "C" NOT NULL,
  owner              text COLLATE "C" NOT NULL,
  result             text NOT NULL,
  first_processed_at timestamptz NOT NULL,
  expires_at         timestamptz NOT NULL,
  PRIMARY KEY (operation, scope, key)
)`,
      `-- BRIN: rows arrive in time order, so a few bytes per block find the expired ones; a B-tree here
-- would cost every first call a second index insert.
CREATE INDEX turngate_record_expiry ON turngate_record USING brin (expires_at) WITH (autosummarize = on)`,
    ],
  },
  {
    version: 2,
    name: 'locks',
    statements: [
      `-- Locks in table mode: one row per name. Rows stay, so that the fence of a name only grows.
-- fillfactor leaves room for in-page (HOT) updates: every grant and renewal is one.
CREATE TABLE turngate_lock (
  name       text COLLATE "C" PRIMARY KEY CHECK (name <> ''),
  owner      text COLLATE "C",
  fence      bigint NOT NULL,
  expires_at timestamptz NOT NULL
) WITH (fillfactor = 50)`,
    ],
  },
  {
    version: 3,
    name: 'transitions',
    statements: [
      `-- History of state machines, written by the statement that moves the state.
CREATE TABLE turngate_transition (
  flow       text COLLATE "C" NOT NULL,
  entity_id  text COLLATE "C" NOT NULL,
  version    bigint NOT NULL,
  event      text COLLATE "C" NOT NULL,
  from_state text COLLATE "C" NOT NULL,
  to_state   text COLLATE "C" NOT NULL,
  at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (flow, entity_id, version)
)`,
    ],
  },
];
