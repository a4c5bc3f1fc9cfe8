/** The stores the laws of staged operations are run on. */
import { PGlite } from '@electric-sql/pglite';
import { createPool as createMysqlPool } from 'mysql2/promise';
import postgresJs from 'postgres';
import type { RecordStore } from '../../src/contract/record-store.ts';
import type { StagedStore } from '../../src/contract/staged-store.ts';
import { createGate, type Gate } from '../../src/index.ts';
import { type MemoryTx, memory, memoryStaged } from '../../src/stores/memory/index.ts';
import { migrate as migrateMysql, mysql, mysqlStaged } from '../../src/stores/mysql/index.ts';
import { migrate, postgres, postgresStaged } from '../../src/stores/postgres/index.ts';
import { createMariadbDatabase } from '../support/mariadb.ts';
import {
  createDatabase,
  createPool,
  effectTable,
  insertEffect,
  selectEffects,
  serverUrl,
} from '../support/postgres.ts';
import { serverUrl as server } from '../support/servers.ts';

/** Any transaction; each target knows its own. */
export type AnyTx = unknown;

/** A store with a table of effects. */
export interface Target {
  /** A gate as another process would have it; `wrap` may put faults around its store. */
  gate(wrap?: (store: StagedStore<AnyTx>) => StagedStore<AnyTx>): Gate<AnyTx>;
  readonly store: StagedStore<AnyTx>;
  /** Transactions queue up behind one another. */
  readonly oneSession: boolean;
  effect(tx: AnyTx, line: string): Promise<void>;
  lines(prefix: string): Promise<string[]>;
  transaction<T>(body: (tx: AnyTx) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

function targetOf(
  records: RecordStore<never>,
  store: StagedStore<never>,
  rest: Omit<Target, 'gate' | 'store' | 'close'> & { close(): Promise<void> },
): Target {
  const gates: Gate<AnyTx>[] = [];
  const any = store as unknown as StagedStore<AnyTx>;
  return {
    ...rest,
    store: any,
    gate(wrap = (same) => same) {
      const options = { staged: wrap(any), memoryCharsMax: 0 };
      const gate = createGate({ records: records as unknown as RecordStore<AnyTx>, ...options });
      gates.push(gate);
      return gate;
    },
    async close() {
      await Promise.all(gates.map((gate) => gate.close({ graceMs: 200 })));
      await rest.close();
    },
  };
}

async function memoryTarget(): Promise<Target> {
  const records = memory();
  const lines: string[] = [];
  return targetOf(records as never, memoryStaged(records) as never, {
    oneSession: false,
    effect: async (tx, line) => (tx as MemoryTx).write(() => void lines.push(line)),
    lines: async (prefix) => lines.filter((line) => line.startsWith(prefix)).sort(),
    transaction: (body) => records.transaction(body as never),
    close: async () => {},
  });
}

async function pgTarget(): Promise<Target> {
  const database = await createDatabase();
  const pool = createPool(database.url, { max: 20 });
  return targetOf(postgres(pool) as never, postgresStaged(pool) as never, {
    oneSession: false,
    effect: async (tx, line) => void (await (tx as typeof pool).query(insertEffect, [line])),
    lines: (prefix) => database.lines(prefix),
    async transaction(body) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        const value = await body(client);
        await client.query('COMMIT');
        return value;
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    },
    async close() {
      await pool.end();
      await database.drop();
    },
  });
}

async function postgresJsTarget(): Promise<Target> {
  const database = await createDatabase();
  const sql = postgresJs(database.url, { max: 20, onnotice: () => {} });
  return targetOf(postgres(sql) as never, postgresStaged(sql) as never, {
    oneSession: false,
    effect: async (tx, line) => void (await (tx as typeof sql).unsafe(insertEffect, [line])),
    lines: (prefix) => database.lines(prefix),
    transaction: (body) => sql.begin(body as never) as never,
    async close() {
      await sql.end();
      await database.drop();
    },
  });
}

async function pgliteTarget(): Promise<Target> {
  const db = new PGlite();
  await db.exec(effectTable);
  await migrate(db);
  return targetOf(postgres(db) as never, postgresStaged(db) as never, {
    oneSession: true,
    effect: async (tx, line) => void (await (tx as PGlite).query(insertEffect, [line])),
    async lines(prefix) {
      const { rows } = await db.query<{ line: string }>(selectEffects, [prefix]);
      return rows.map(({ line }) => line);
    },
    transaction: (body) => db.transaction(body as never) as never,
    close: () => db.close(),
  });
}

async function mariadbTarget(flags: string): Promise<Target> {
  const database = await createMariadbDatabase();
  const pool = createMysqlPool({ uri: database.url, connectionLimit: 20, flags: [flags] });
  await migrateMysql(pool);
  await pool.query('CREATE TABLE effect (line VARBINARY(255) NOT NULL)');
  return targetOf(mysql(pool) as never, mysqlStaged(pool) as never, {
    oneSession: false,
    effect: async (tx, line) =>
      void (await (tx as typeof pool).query('INSERT INTO effect (line) VALUES (?)', [line])),
    async lines(prefix) {
      const [rows] = await pool.query('SELECT line FROM effect ORDER BY line');
      const lines = (rows as { line: Buffer }[]).map(({ line }) => line.toString());
      return lines.filter((line) => line.startsWith(prefix));
    },
    async transaction(body) {
      const connection = await pool.getConnection();
      try {
        await connection.beginTransaction();
        const value = await body(connection);
        await connection.commit();
        return value;
      } catch (error) {
        await connection.rollback();
        throw error;
      } finally {
        connection.release();
      }
    },
    async close() {
      await pool.end();
      await database.drop();
    },
  });
}

/** What can be tested in this run. */
export const targets: readonly { readonly name: string; readonly open: () => Promise<Target> }[] = [
  { name: 'memory', open: memoryTarget },
  { name: 'PGlite', open: pgliteTarget },
  ...(serverUrl === ''
    ? []
    : [
        { name: 'pg', open: pgTarget },
        { name: 'postgres.js', open: postgresJsTarget },
      ]),
  ...(server('mariadb') === ''
    ? []
    : [
        { name: 'MariaDB', open: () => mariadbTarget('+FOUND_ROWS') },
        { name: 'MariaDB counting changed rows', open: () => mariadbTarget('-FOUND_ROWS') },
      ]),
];
