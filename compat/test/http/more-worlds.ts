/**
 * The stores besides memory and PostgreSQL, as worlds for the experiments. Not PGlite: experiments look
 * at their effects while a handler has its only session.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Redis } from 'ioredis';
import { createConnection, createPool } from 'mysql2/promise';
import { createGate } from 'turngate';
import { migrate as migrateMysql, mysql } from 'turngate/mysql';
import { redisRecords } from 'turngate/redis';
import { migrate as migrateSqlite, sqlite } from 'turngate/sqlite';
import type { World } from './world.ts';

const startingWith = (lines: readonly string[], prefix: string): string[] =>
  lines.filter((line) => line.startsWith(prefix)).sort();

export async function mariadbWorld(serverUrl: string): Promise<World> {
  const name = `turngate_http_${randomBytes(6).toString('hex')}`;
  const asAdmin = async (statement: string): Promise<void> => {
    const connection = await createConnection(serverUrl);
    await connection.query(statement);
    await connection.end();
  };
  await asAdmin(`CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const pool = createPool({ uri: url.href, connectionLimit: 10 });
  await migrateMysql(pool);
  await pool.query('CREATE TABLE effect (line VARCHAR(200) NOT NULL)');
  const gate = createGate({ records: mysql(pool) });
  const column = async (text: string, of: string): Promise<unknown[]> => {
    const [rows] = await pool.query(text);
    return (rows as Record<string, unknown>[]).map((row) => row[of]);
  };
  return {
    name: 'MariaDB',
    gate,
    write: async (tx, line) =>
      void (await (tx as typeof pool).query('INSERT INTO effect VALUES (?)', [line])),
    spoil: (tx) => (tx as typeof pool).query("SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213"),
    lines: async (prefix) =>
      startingWith((await column('SELECT line FROM effect', 'line')) as string[], prefix),
    records: async () =>
      Number((await column('SELECT COUNT(*) AS n FROM turngate_record', 'n'))[0]),
    async close() {
      await gate.close();
      await pool.end();
      await asAdmin(`DROP DATABASE ${name}`);
    },
  };
}

export async function sqliteWorld(): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'turngate-http-sqlite-'));
  const file = join(folder, 'http.db');
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  // Its constraint is checked at COMMIT only: the answer must not have left by then.
  db.exec(`CREATE TABLE allowed (line TEXT NOT NULL PRIMARY KEY) STRICT;
    CREATE TABLE effect (line TEXT NOT NULL, refused TEXT GENERATED ALWAYS AS
      (CASE WHEN line LIKE '%late-refusal%' THEN line END) STORED
      REFERENCES allowed DEFERRABLE INITIALLY DEFERRED) STRICT;
    CREATE TABLE full (one INTEGER PRIMARY KEY) STRICT;
    INSERT INTO full VALUES (1)`);
  await migrateSqlite(db);
  const outside = new Database(file);
  const gate = createGate({ records: sqlite(db) });
  return {
    name: 'SQLite',
    gate,
    write: async (tx, line) =>
      void (tx as typeof db).prepare('INSERT INTO effect (line) VALUES (?)').run(line),
    spoil: async (tx) => (tx as typeof db).exec('INSERT OR ROLLBACK INTO full VALUES (1)'),
    lines: async (prefix) =>
      startingWith(outside.prepare('SELECT line FROM effect').pluck().all() as string[], prefix),
    records: async () =>
      Number(outside.prepare('SELECT count(*) FROM turngate_record').pluck().get()),
    async close() {
      await gate.close();
      db.close();
      outside.close();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

export async function redisWorld(url: string): Promise<World> {
  const client = new Redis(url);
  const prefix = `http${randomBytes(6).toString('hex')}:`;
  const gate = createGate({ records: redisRecords(client, { prefix }) });
  const effects: string[] = [];
  return {
    name: 'Redis',
    gate,
    loose: true,
    write: async (_, line) => void effects.push(line),
    lines: async (prefix) => startingWith(effects, prefix),
    records: async () => (await client.keys(`${prefix}*`)).length,
    async close() {
      await gate.close();
      client.disconnect();
    },
  };
}
