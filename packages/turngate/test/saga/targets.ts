/** Gates over each database, as coordinators and participants use them. */
import { createPool } from 'mysql2/promise';
import { inject } from 'vitest';
import type { SqlDatabase } from '../../src/contract/sql-session.ts';
import type { StagedStore } from '../../src/contract/staged-store.ts';
import { createGate, type Gate } from '../../src/index.ts';
import {
  migrate as migrateMysql,
  mysql,
  mysqlDatabase,
  mysqlStaged,
} from '../../src/stores/mysql/index.ts';
import {
  migrate,
  postgres,
  postgresDatabase,
  postgresStaged,
} from '../../src/stores/postgres/index.ts';
import { createMariadbDatabase } from '../support/mariadb.ts';
import { createDatabase, createPool as createPostgresPool } from '../support/postgres.ts';

export interface Opened {
  readonly database: SqlDatabase;
  readonly staged: StagedStore<unknown>;
  gate(): Gate<unknown>;
  close(): Promise<void>;
}

const effect = 'CREATE TABLE effect (line VARCHAR(200) NOT NULL)';

async function openPostgres(): Promise<Opened> {
  const target = await createDatabase({ migrated: false });
  const pool = createPostgresPool(target.url, { max: 12 });
  await migrate(pool);
  return {
    database: postgresDatabase(pool) as SqlDatabase,
    staged: postgresStaged(pool) as StagedStore<unknown>,
    gate: () =>
      createGate({ records: postgres(pool), staged: postgresStaged(pool) }) as Gate<unknown>,
    async close() {
      await pool.end();
      await target.drop();
    },
  };
}

async function openMariadb(): Promise<Opened> {
  const target = await createMariadbDatabase();
  const pool = createPool({ uri: target.url, connectionLimit: 12 });
  await migrateMysql(pool);
  await pool.query(effect);
  return {
    database: mysqlDatabase(pool) as SqlDatabase,
    staged: mysqlStaged(pool) as StagedStore<unknown>,
    gate: () => createGate({ records: mysql(pool), staged: mysqlStaged(pool) }) as Gate<unknown>,
    async close() {
      await pool.end();
      await target.drop();
    },
  };
}

export const targets = [
  { name: 'PostgreSQL', missing: inject('postgresUrl') === '', open: openPostgres },
  { name: 'MariaDB', missing: inject('mariadbUrl') === '', open: openMariadb },
];
