/** PostgreSQL stores: records, locks, migrations, over `pg`, `postgres` or PGlite. */

export type { PostgresClient, PostgresTxOf } from './clients.ts';
export type { PgClientLike, PgPoolLike } from './drivers/pg-types.ts';
export type { PGliteLike, PGliteTxLike } from './drivers/pglite.ts';
export type { PostgresJsLike, PostgresJsTxLike } from './drivers/postgres-js.ts';
export type { MigrationReport } from './migrate.ts';
export {
  migrate,
  type PostgresOptions,
  postgres,
  postgresDatabase,
  postgresLocks,
  postgresSession,
  postgresStaged,
} from './open.ts';
export { postgresError } from './postgres-error.ts';
export type { PostgresSessionClient } from './session-clients.ts';
export {
  type PostgresSessionLockStore,
  type PostgresSessionOptions,
  postgresSessionLocks,
} from './session-open.ts';
