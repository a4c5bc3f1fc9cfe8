/** SQLite stores: records, staged operations, migrations, over better-sqlite3, libsql or `node:sqlite`. */

export type { SqliteLike, SqliteStatementLike } from './client.ts';
export type { MigrationReport } from './migrate.ts';
export {
  migrate,
  type SqliteOptions,
  sqlite,
  sqliteDatabase,
  sqliteSession,
  sqliteStaged,
} from './open.ts';
export { sqliteError } from './sqlite-error.ts';
