/** isUniqueViolation through the real drivers and ORMs, on PostgreSQL, MariaDB and SQLite. */
import { PGlite } from '@electric-sql/pglite';
import Sqlite from 'better-sqlite3';
import { sql as drizzleSql } from 'drizzle-orm';
import { drizzle as drizzleSqlite } from 'drizzle-orm/better-sqlite3';
import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import createKnex from 'knex';
import { Kysely, sql as kyselySql, PostgresDialect } from 'kysely';
import mysql from 'mysql2/promise';
import pg from 'pg';
import postgres from 'postgres';
import { Sequelize } from 'sequelize';
import { isUniqueViolation } from 'turngate';
import { DataSource } from 'typeorm';
import { afterAll, describe, expect, inject, it } from 'vitest';

type Run = (text: string) => Promise<unknown>;

/** Opens a client; its end goes into `ends`. */
type Open = (url: string) => Promise<Run> | Run;

const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

const create = `CREATE TABLE unique_law (id INT PRIMARY KEY, client_key VARCHAR(40) NOT NULL,
  other VARCHAR(40) NOT NULL, CONSTRAINT law_client_key UNIQUE (client_key), CONSTRAINT law_other UNIQUE (other))`;
const insert = (id: number, key: string, other: string): string =>
  `INSERT INTO unique_law (id, client_key, other) VALUES (${id}, '${key}', '${other}')`;

/** The laws, on one client. `names`: how this database names the constraint. */
function laws(run: () => Promise<Run>, names: { key: string; other: string }): void {
  const failing = async (text: string): Promise<unknown> =>
    (await run())(text).then(
      () => expect.unreachable('it must fail'),
      (error: unknown) => error,
    );

  it('a second row of one key is a violation of that constraint and of no other', async () => {
    await (await run())(insert(1, 'k1', 'o1'));
    const error = await failing(insert(2, 'k1', 'o2'));
    expect(isUniqueViolation(error)).toBe(true);
    expect(isUniqueViolation(error, names.key)).toBe(true);
    expect(isUniqueViolation(error, names.other)).toBe(false);
    expect(isUniqueViolation(new Error('wrapped', { cause: error }), names.key)).toBe(true);
    // A value that is spelt like the other constraint does not become its name.
    await (await run())(insert(3, `x' for key '${names.other}`.replaceAll("'", "''"), 'o3'));
    const tricky = await failing(
      insert(4, `x' for key '${names.other}`.replaceAll("'", "''"), 'o4'),
    );
    expect(isUniqueViolation(tricky, names.key)).toBe(true);
    expect(isUniqueViolation(tricky, names.other)).toBe(false);
  });

  it('other errors are none', async () => {
    for (const text of [
      'SELECT * FROM no_such_table',
      'INSERT INTO unique_law (id, client_key, other) VALUES (9, NULL, NULL)',
    ]) {
      expect(isUniqueViolation(await failing(text))).toBe(false);
    }
  });
}

function suite(
  url: string | undefined,
  name: string,
  open: Open,
  names = { key: 'law_client_key', other: 'law_other' },
): void {
  describe.skipIf(url === '')(name, () => {
    let opened: Promise<Run> | undefined;
    const make = async (): Promise<Run> => {
      const run = await open(url ?? '');
      await run('DROP TABLE IF EXISTS unique_law');
      await run(create);
      return run;
    };
    laws(() => (opened ??= make()), names);
  });
}

const pgUrl = inject('postgresUrl');
const pool = (url: string): pg.Pool => {
  const made = new pg.Pool({ connectionString: url, max: 1 });
  made.on('error', () => undefined);
  ends.push(() => made.end());
  return made;
};
suite(pgUrl, 'pg', (url) => {
  const client = pool(url);
  return (text) => client.query(text);
});
suite(pgUrl, 'postgres.js', (url) => {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  ends.push(() => sql.end());
  return async (text) => await sql.unsafe(text);
});
suite(undefined, 'PGlite', () => {
  const db = new PGlite();
  ends.push(() => db.close());
  return (text) => db.query(text);
});
suite(pgUrl, 'Drizzle on pg', (url) => {
  const db = drizzlePg(pool(url));
  return (text) => db.execute(drizzleSql.raw(text));
});
suite(pgUrl, 'Knex on pg', (url) => {
  const knex = createKnex({ client: 'pg', connection: url, pool: { min: 0, max: 1 } });
  ends.push(() => knex.destroy());
  return async (text) => await knex.raw(text);
});
suite(pgUrl, 'Kysely on pg', (url) => {
  const db = new Kysely({ dialect: new PostgresDialect({ pool: pool(url) }) });
  return (text) => kyselySql.raw(text).execute(db);
});
suite(pgUrl, 'TypeORM on pg', async (url) => {
  const source = await new DataSource({ type: 'postgres', url }).initialize();
  ends.push(() => source.destroy());
  return (text) => source.query(text);
});
suite(pgUrl, 'Sequelize on pg', (url) => {
  const sequelize = new Sequelize(url, { dialect: 'postgres', logging: false });
  ends.push(() => sequelize.close());
  return (text) => sequelize.query(text);
});

const mariadb = inject('mariadbUrl');
const databaseName = `unique_law_${process.pid}`;
const mysqlUrl = async (url: string): Promise<string> => {
  const connection = await mysql.createConnection(url);
  await connection.query(`CREATE DATABASE IF NOT EXISTS ${databaseName}`);
  await connection.end();
  const made = new URL(url);
  made.pathname = `/${databaseName}`;
  return made.href;
};
suite(mariadb, 'mysql2', async (url) => {
  const client = await mysql.createConnection(await mysqlUrl(url));
  ends.push(() => client.end());
  return (text) => client.query(text);
});
suite(mariadb, 'Drizzle on mysql2', async (url) => {
  const client = await mysql.createConnection(await mysqlUrl(url));
  ends.push(() => client.end());
  const db = drizzleMysql(client);
  return (text) => db.execute(drizzleSql.raw(text));
});
suite(mariadb, 'Knex on mysql2', async (url) => {
  const knex = createKnex({
    client: 'mysql2',
    connection: await mysqlUrl(url),
    pool: { min: 0, max: 1 },
  });
  ends.push(() => knex.destroy());
  return async (text) => await knex.raw(text);
});
suite(mariadb, 'TypeORM on mysql2', async (url) => {
  const source = new DataSource({ type: 'mysql', url: await mysqlUrl(url) });
  await source.initialize();
  ends.push(() => source.destroy());
  return (text) => source.query(text);
});
suite(mariadb, 'Sequelize on mysql2', async (url) => {
  const sequelize = new Sequelize(await mysqlUrl(url), { dialect: 'mysql', logging: false });
  ends.push(() => sequelize.close());
  return (text) => sequelize.query(text);
});

const sqliteNames = { key: 'unique_law.client_key', other: 'unique_law.other' };
suite(
  undefined,
  'better-sqlite3',
  () => {
    const db = new Sqlite(':memory:');
    return async (text) => db.prepare(text).run();
  },
  sqliteNames,
);
suite(
  undefined,
  'Drizzle on better-sqlite3',
  () => {
    const db = drizzleSqlite(new Sqlite(':memory:'));
    return async (text) => db.run(drizzleSql.raw(text));
  },
  sqliteNames,
);

describe('shapes without a server here', () => {
  it('Prisma 7 over a driver adapter', () => {
    const error = (constraint: object, originalCode = '23505') => ({
      code: 'P2002',
      meta: {
        driverAdapterError: {
          cause: { kind: 'UniqueConstraintViolation', originalCode, constraint },
        },
      },
    });
    expect(isUniqueViolation(error({ index: 'law_client_key' }), 'law_client_key')).toBe(true);
    expect(isUniqueViolation(error({ fields: ['"a"', '"b"'] }), 'a,b')).toBe(true);
    expect(isUniqueViolation(error({ fields: ['a'] }), 'law_client_key')).toBe(false);
    expect(isUniqueViolation({ code: 'P2002', meta: { target: ['a', 'b'] } }, 'a,b')).toBe(true);
    expect(isUniqueViolation({ code: 'P2025' })).toBe(false);
  });

  it('cycles, depths, and things that are no errors', () => {
    const a: Record<string, unknown> = {};
    a['cause'] = { original: a, driverError: { code: '23505' } };
    expect(isUniqueViolation(a)).toBe(true);
    let deep: Record<string, unknown> = { code: '23505' };
    for (let i = 0; i < 50; i++) deep = { cause: deep };
    expect(isUniqueViolation(deep)).toBe(false);
    for (const nothing of [undefined, null, '23505', 23505, [], {}]) {
      expect(isUniqueViolation(nothing)).toBe(false);
    }
  });
});
