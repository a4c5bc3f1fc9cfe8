/** The record stores the races are run on, each with a place for effects; SQLite is in compat/test/sqlite. */
import { PGlite } from '@electric-sql/pglite';
import { createPool as createMysqlPool } from 'mysql2/promise';
import postgresJs from 'postgres';
import type { RecordStore } from '../../src/contract/record-store.ts';
import { type MemoryTx, memory } from '../../src/stores/memory/index.ts';
import { mysql } from '../../src/stores/mysql/index.ts';
import { migrate, postgres } from '../../src/stores/postgres/index.ts';
import { redisRecords } from '../../src/stores/redis/index.ts';
import { createDatabase as createMariadb } from '../mysql/support.ts';
import { freshPrefix, ioredis } from '../redis/support.ts';
import { createDatabase, createPool, effectTable, insertEffect } from '../support/postgres.ts';
import { type ServerName, serverUrl } from '../support/servers.ts';
import type { AnyTx, Target } from './race-laws.ts';

type Typed = RecordStore<never>;
const any = (store: unknown): RecordStore<AnyTx> => store as Typed as RecordStore<AnyTx>;

async function memoryTarget(): Promise<Target> {
  const store = any(memory());
  const lines: string[] = [];
  return {
    store: () => store,
    effect: async (tx, line) => (tx as MemoryTx).write(() => void lines.push(line)),
    lines: async () => lines,
    close: async () => {},
  };
}

async function pgTarget(): Promise<Target> {
  const database = await createDatabase();
  const pool = createPool(database.url);
  return {
    store: () => any(postgres(pool)),
    effect: async (tx, line) => void (await (tx as typeof pool).query(insertEffect, [line])),
    lines: () => database.lines(''),
    async close() {
      await pool.end();
      await database.drop();
    },
  };
}

async function postgresJsTarget(): Promise<Target> {
  const database = await createDatabase();
  const sql = postgresJs(database.url, { max: 10, onnotice: () => {} });
  return {
    store: () => any(postgres(sql)),
    effect: async (tx, line) => void (await (tx as typeof sql).unsafe(insertEffect, [line])),
    lines: () => database.lines(''),
    async close() {
      await sql.end();
      await database.drop();
    },
  };
}

async function pgliteTarget(): Promise<Target> {
  const db = new PGlite();
  await db.exec(effectTable);
  await migrate(db);
  return {
    store: () => any(postgres(db)),
    effect: async (tx, line) => void (await (tx as PGlite).query(insertEffect, [line])),
    async lines() {
      const { rows } = await db.query<{ line: string }>('SELECT line FROM effect');
      return rows.map(({ line }) => line);
    },
    close: () => db.close(),
  };
}

async function mariadbTarget(): Promise<Target> {
  const database = await createMariadb();
  const pool = createMysqlPool({ uri: database.url, connectionLimit: 10 });
  return {
    store: () => any(mysql(pool)),
    effect: async (tx, line) =>
      void (await (tx as typeof pool).query('INSERT INTO effect (line) VALUES (?)', [line])),
    lines: () => database.lines(''),
    async close() {
      await pool.end();
      await database.drop();
    },
  };
}

async function redisTarget(): Promise<Target> {
  const client = ioredis(serverUrl('redis'));
  const prefix = freshPrefix();
  const lines: string[] = [];
  return {
    store: () => any(redisRecords(client, { prefix })),
    effect: async (_, line) => void lines.push(line),
    lines: async () => lines,
    close: async () => {},
  };
}

/** Which server each of them needs. */
export const targets: readonly {
  readonly name: string;
  readonly needs: readonly ServerName[];
  readonly open: () => Promise<Target>;
}[] = [
  { name: 'memory', needs: [], open: memoryTarget },
  { name: 'PGlite', needs: [], open: pgliteTarget },
  { name: 'pg', needs: ['postgres'], open: pgTarget },
  { name: 'postgres.js', needs: ['postgres'], open: postgresJsTarget },
  { name: 'MariaDB', needs: ['mariadb'], open: mariadbTarget },
  { name: 'Redis', needs: ['redis'], open: redisTarget },
];
