/** The SQL databases of this test run, alike: for suites that hold on each of them. */
import { createPool } from 'mysql2/promise';
import { inject } from 'vitest';
import type { SqlDatabase } from '../../src/contract/sql-session.ts';
import { noSteps, together } from '../../src/contract/sql-together.ts';
import { migrate as migrateMysql, mysqlDatabase } from '../../src/stores/mysql/index.ts';
import { migrate, postgresDatabase } from '../../src/stores/postgres/index.ts';
import { createMariadbDatabase } from './mariadb.ts';
import { createDatabase, createPool as createPostgresPool } from './postgres.ts';

/** An open database with Turngate's tables and a table for effects. */
export interface OpenDatabase {
  readonly database: SqlDatabase;
  readonly url: string;
  close(): Promise<void>;
}

/** A kind of database, at one isolation level. */
export interface DatabaseKind {
  readonly name: string;
  readonly isolation: string;
  readonly missing: boolean;
  open(connections?: number): Promise<OpenDatabase>;
}

interface OwnConnection {
  readonly tx: unknown;
  readonly begin: readonly string[];
  send(text: string): Promise<unknown>;
  readonly client: { release(): void };
}

/**
 * With transactions as a caller opens them, at a level of the caller's choice: those that Turngate
 * opens are always at READ COMMITTED.
 */
function withLevel(database: SqlDatabase, connect: () => Promise<OwnConnection>): SqlDatabase {
  return {
    ...database,
    async transaction(work, { first = noSteps, last = noSteps } = {}) {
      const { tx, begin, send, client } = await connect();
      try {
        for (const text of begin) await send(text);
        const sql = database.session(tx);
        const value = await work(sql, tx, await together(sql, first(sql)));
        await together(sql, last(value));
        await send('COMMIT');
        return value;
      } catch (error) {
        await send('ROLLBACK').catch(() => undefined);
        throw error;
      } finally {
        client.release();
      }
    },
  };
}

const effectTable = 'CREATE TABLE effect (line VARCHAR(200) NOT NULL)';

function postgresKind(isolation: string): DatabaseKind {
  return {
    name: `PostgreSQL, ${isolation}`,
    isolation,
    missing: inject('postgresUrl') === '',
    async open(connections = 12) {
      const target = await createDatabase({ migrated: false });
      const pool = createPostgresPool(target.url, { max: connections });
      await migrate(pool);
      return {
        database: withLevel(postgresDatabase(pool) as SqlDatabase, async () => {
          const client = await pool.connect();
          const send = (text: string) => client.query(text);
          return { tx: client, send, begin: [`BEGIN ISOLATION LEVEL ${isolation}`], client };
        }),
        url: target.url,
        async close() {
          await pool.end();
          await target.drop();
        },
      };
    },
  };
}

function mariadbKind(isolation: string): DatabaseKind {
  return {
    name: `MariaDB, ${isolation}`,
    isolation,
    missing: inject('mariadbUrl') === '',
    async open(connections = 12) {
      const target = await createMariadbDatabase();
      // Both ways a pool can be: several statements in one trip, or one after the other.
      const multipleStatements = isolation === 'REPEATABLE READ';
      const limits = { connectionLimit: connections, multipleStatements };
      const pool = createPool({ uri: target.url, ...limits });
      await migrateMysql(pool);
      await pool.query(effectTable);
      return {
        database: withLevel(mysqlDatabase(pool) as SqlDatabase, async () => {
          const client = await pool.getConnection();
          const begin = [`SET TRANSACTION ISOLATION LEVEL ${isolation}`, 'START TRANSACTION'];
          return { tx: client, send: (text: string) => client.query(text), begin, client };
        }),
        url: target.url,
        async close() {
          await pool.end();
          await target.drop();
        },
      };
    },
  };
}

/** Each database as most services run it. */
const databases: readonly DatabaseKind[] = [
  postgresKind('READ COMMITTED'),
  mariadbKind('READ COMMITTED'),
];

/** Each database at both isolation levels that protocols must bear. */
export const databasesAndLevels: readonly DatabaseKind[] = [
  ...databases,
  postgresKind('REPEATABLE READ'),
  mariadbKind('REPEATABLE READ'),
];
