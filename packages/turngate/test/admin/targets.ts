/** Databases with all three kinds of stores and an audit log, for the operators' laws. */
import { createPool as createMysqlPool } from 'mysql2/promise';
import { createAdmin, sqlAudit } from '../../src/admin/index.ts';
import type { SqlDatabase } from '../../src/contract/sql-session.ts';
import { createGate } from '../../src/index.ts';
import {
  migrate as migrateMysql,
  mysql,
  mysqlDatabase,
  mysqlLocks,
  mysqlStaged,
} from '../../src/stores/mysql/index.ts';
import {
  postgres,
  postgresDatabase,
  postgresLocks,
  postgresStaged,
} from '../../src/stores/postgres/index.ts';
import { createMariadbDatabase } from '../support/mariadb.ts';
import { createDatabase, createPool } from '../support/postgres.ts';

export async function openPostgres() {
  const target = await createDatabase();
  const pool = createPool(target.url);
  return {
    ...opened(
      { records: postgres(pool), staged: postgresStaged(pool), locks: postgresLocks(pool) },
      postgresDatabase(pool) as SqlDatabase,
    ),
    url: target.url,
    option: '--pg',
    async close() {
      await pool.end();
      await target.drop();
    },
  };
}

export async function openMariadb() {
  const target = await createMariadbDatabase();
  const pool = createMysqlPool({ uri: target.url, connectionLimit: 10 });
  await migrateMysql(pool);
  return {
    ...opened(
      { records: mysql(pool), staged: mysqlStaged(pool), locks: mysqlLocks(pool) },
      mysqlDatabase(pool) as SqlDatabase,
    ),
    url: target.url,
    option: '--mysql',
    async close() {
      await pool.end();
      await target.drop();
    },
  };
}

function opened(stores: object, database: SqlDatabase) {
  // The laws do not touch transactions, so their type does not matter.
  const all = stores as Parameters<typeof createGate<never>>[0];
  const audit = sqlAudit(database);
  const gate = createGate<never>({ ...all, memoryCharsMax: 0 });
  return {
    database,
    gate,
    stores: { ...all, audit },
    admin: createAdmin({ ...(all as object), audit, actor: 'ann' }),
  };
}

export type Opened = Awaited<ReturnType<typeof openPostgres>>;
