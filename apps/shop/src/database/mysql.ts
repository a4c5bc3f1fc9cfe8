/** The shop on MySQL 8 or MariaDB 10.6 and newer. */
import { createPool, type Pool, type PoolConnection } from 'mysql2/promise';
import type { RecordStore, SqlDatabase, SqlSession, StagedStore } from 'turngate/contract';
import { migrate, mysql, mysqlDatabase, mysqlSession, mysqlStaged } from 'turngate/mysql';
import type { Tx } from '../trade/store.ts';
import { migrateShopOnMysql } from './schema-mysql.ts';
import type { ShopDatabase } from './shop-database.ts';

const connectionsMax = 12;
const connectTimeoutMs = 5_000;
/** A statement that waits longer for a row ends in an error; with the default it would hang 50 s. */
const lockWaitSeconds = 10;

/** Opens it. */
export function openMysql(url: string): ShopDatabase {
  const pool = createPool({
    uri: url.replace(/^mariadb:/, 'mysql:'),
    connectionLimit: connectionsMax,
    connectTimeout: connectTimeoutMs,
    enableKeepAlive: true,
    charset: 'utf8mb4',
    multipleStatements: true, // Several statements travel together; values are always escaped.
  });
  // Sent before anything the borrower sends, on a connection that answers in order. One that refuses
  // them is no good.
  pool.pool.on('connection', (connection) => {
    for (const setting of [
      `SET SESSION innodb_lock_wait_timeout = ${lockWaitSeconds}`,
      'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
    ]) {
      connection.query(setting, (error) => {
        if (error !== null) connection.destroy();
      });
    }
  });
  return {
    records: mysql(pool) as RecordStore<Tx>,
    staged: mysqlStaged(pool) as StagedStore<Tx>,
    database: mysqlDatabase(pool) as SqlDatabase<Tx>,
    snapshot: (read) => readSnapshot(pool, read),
    async migrate() {
      await migrate(pool);
      await migrateShopOnMysql(pool);
    },
    end: () => pool.end(),
  };
}

/** At READ COMMITTED each statement would see another moment. */
async function readSnapshot<T>(pool: Pool, read: (sql: SqlSession) => Promise<T>): Promise<T> {
  const connection: PoolConnection = await pool.getConnection();
  try {
    await connection.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ');
    await connection.query('START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY');
    const value = await read(mysqlSession(connection));
    await connection.query('COMMIT');
    connection.release();
    return value;
  } catch (error) {
    connection.destroy(); // Whatever it was in the middle of ends with it.
    throw error;
  }
}
