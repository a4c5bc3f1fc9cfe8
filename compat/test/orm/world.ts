// biome-ignore-all lint/suspicious/noExplicitAny: each ORM has generics of its own, which no shared law can name.
/** The databases the ORMs are tried on, each with Turngate's tables and one for effects. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import mysql2 from 'mysql2/promise';
import pg from 'pg';
import type { RecordStore, SqlDialect, SqlSession } from 'turngate/contract';
import { migrate as migrateMysql, mysql } from 'turngate/mysql';
import { migrate as migratePostgres, postgres } from 'turngate/postgres';
import { migrate as migrateSqlite, sqlite } from 'turngate/sqlite';
import { inject } from 'vitest';

/** A database of one test file. */
export interface Ground {
  readonly dialect: SqlDialect;
  readonly url: string;
  /** Turngate's records over a plain driver. */
  readonly records: RecordStore<any>;
  /** Committed effect lines, seen from outside. */
  lines(prefix: string): Promise<string[]>;
  drop(): Promise<void>;
}

/** An ORM on a ground. */
export interface Orm<Tx> {
  /** Opens the ORM's own transaction. */
  transaction<T>(body: (tx: Tx) => Promise<T>): Promise<T>;
  session(tx: Tx): SqlSession;
  /** Writes one line the way users of this ORM write. */
  insert(tx: Tx, line: string): Promise<unknown>;
  /** The handle of the ORM outside any transaction, if it has one that could be mistaken. */
  readonly outside?: Tx;
  close(): Promise<unknown>;
}

export const constraint = 'orm_effect_line';
const table = `CREATE TABLE orm_effect (line VARCHAR(200) NOT NULL PRIMARY KEY, note VARCHAR(200))`;
const index = `CREATE UNIQUE INDEX ${constraint} ON orm_effect (note)`;
const select = 'SELECT line FROM orm_effect ORDER BY line';

export async function postgresGround(): Promise<Ground> {
  const name = `turngate_orm_${randomBytes(6).toString('hex')}`;
  const server = inject('postgresUrl');
  await once(server, `CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 4 });
  pool.on('error', () => {});
  await migratePostgres(pool);
  await pool.query(`${table}; ${index}`);
  return {
    dialect: 'postgres',
    url: url.href,
    records: postgres(pool),
    async lines(prefix) {
      const { rows } = await pool.query(select);
      return startingWith(prefix, rows);
    },
    async drop() {
      await pool.end();
      await once(server, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

async function once(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

export async function mariadbGround(): Promise<Ground> {
  const name = `turngate_orm_${randomBytes(6).toString('hex')}`;
  const server = inject('mariadbUrl');
  const admin = await mysql2.createConnection(server);
  await admin.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const pool = mysql2.createPool({ uri: url.href, connectionLimit: 4 });
  await migrateMysql(pool);
  await pool.query(table);
  await pool.query(index);
  return {
    dialect: 'mysql',
    url: url.href,
    records: mysql(pool),
    async lines(prefix) {
      const [rows] = await pool.query(select);
      return startingWith(prefix, rows as { line: string }[]);
    },
    async drop() {
      await pool.end();
      await admin.query(`DROP DATABASE ${name}`);
      await admin.end();
    },
  };
}

export async function sqliteGround(): Promise<Ground> {
  const folder = mkdtempSync(join(tmpdir(), 'turngate-orm-'));
  const url = join(folder, 'orm.db');
  const db = new Database(url);
  db.pragma('journal_mode = WAL');
  await migrateSqlite(db);
  db.exec(`${table}; ${index}`);
  return {
    dialect: 'sqlite',
    url,
    records: sqlite(db),
    lines: async (prefix) => startingWith(prefix, db.prepare(select).all()),
    async drop() {
      db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function startingWith(prefix: string, rows: { line: string }[]): string[] {
  return rows.map(({ line }) => line).filter((line) => line.startsWith(prefix));
}

/** The parts of a url as drivers without urls take them. */
export function connectionOf(url: string) {
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    host: hostname,
    port: Number(port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: pathname.slice(1),
  };
}
