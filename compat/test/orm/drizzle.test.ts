// biome-ignore-all lint/suspicious/noExplicitAny: each ORM has generics of its own, which no shared law can name.
import Database from 'better-sqlite3';
import { sql } from 'drizzle-orm';
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3';
import { mysqlTable, varchar } from 'drizzle-orm/mysql-core';
import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { pgTable, text } from 'drizzle-orm/pg-core';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import { sqliteTable, text as sqliteText } from 'drizzle-orm/sqlite-core';
import mysql2 from 'mysql2/promise';
import pg from 'pg';
import postgres from 'postgres';
import { drizzleTx } from 'turngate/orm';
import { sqliteDatabase } from 'turngate/sqlite';
import { ormSuite } from './laws.ts';

const pgEffect = pgTable('orm_effect', { line: text('line').notNull() });
const mysqlEffect = mysqlTable('orm_effect', { line: varchar('line', { length: 200 }).notNull() });
const sqliteEffect = sqliteTable('orm_effect', { line: sqliteText('line').notNull() });

ormSuite<any>('Drizzle', {
  async postgres({ url }) {
    const pool = new pg.Pool({ connectionString: url, max: 8 });
    pool.on('error', () => undefined);
    const db = drizzlePg(pool);
    return {
      transaction: (body) => db.transaction(body),
      session: (tx) => drizzleTx(tx, sql),
      insert: async (tx, line) => tx.insert(pgEffect).values({ line }),
      close: () => pool.end(),
    };
  },
  async mysql({ url }) {
    const pool = mysql2.createPool({ uri: url, connectionLimit: 8 });
    const db = drizzleMysql(pool);
    return {
      transaction: (body) => db.transaction(body),
      session: (tx) => drizzleTx(tx, sql),
      insert: async (tx, line) => tx.insert(mysqlEffect).values({ line }),
      close: () => pool.end(),
    };
  },
  async sqlite({ url }) {
    // Its own transactions are synchronous: Turngate opens them on the handle.
    const handle = new Database(url);
    const db = drizzleSqlite(handle);
    return {
      transaction: (body) => sqliteDatabase(handle).transaction(() => body(db)),
      session: (tx) => drizzleTx(tx, sql),
      insert: async (tx, line) => tx.insert(sqliteEffect).values({ line }).run(),
      outside: db,
      close: async () => handle.close(),
    };
  },
});

ormSuite<any>('Drizzle over postgres.js', {
  async postgres({ url }) {
    const client = postgres(url, { max: 8, onnotice() {} });
    const db = drizzlePostgresJs(client);
    return {
      transaction: (body) => db.transaction(body),
      session: (tx) => drizzleTx(tx, sql),
      insert: async (tx, line) => tx.insert(pgEffect).values({ line }),
      close: () => client.end(),
    };
  },
});
