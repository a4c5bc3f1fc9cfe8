/** MySQL and MariaDB stores: records, locks, migrations, over a `mysql2` pool. */

export type { MigrationReport } from './migrate.ts';
export { mysqlError } from './mysql-error.ts';
export type {
  MysqlCallbackPoolLike,
  MysqlConnectionLike,
  MysqlPool,
  MysqlPromisePoolLike,
} from './mysql2.ts';
export {
  type MysqlOptions,
  migrate,
  mysql,
  mysqlDatabase,
  mysqlLocks,
  mysqlSession,
  mysqlSessionLocks,
  mysqlStaged,
} from './open.ts';
