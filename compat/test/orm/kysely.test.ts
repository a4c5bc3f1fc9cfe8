// biome-ignore-all lint/suspicious/noExplicitAny: each ORM has generics of its own, which no shared law can name.
import Database from 'better-sqlite3';
import { CamelCasePlugin, Kysely, MysqlDialect, PostgresDialect, SqliteDialect } from 'kysely';
import { createPool } from 'mysql2';
import pg from 'pg';
import { kyselyTx } from 'turngate/orm';
import { ormSuite } from './laws.ts';
import type { Orm } from './world.ts';

function opened(db: Kysely<any>): Orm<any> {
  return {
    transaction: (body) => db.transaction().execute(body),
    session: (tx) => kyselyTx(tx),
    insert: (tx, line) => tx.insertInto('ormEffect').values({ line }).execute(),
    outside: db,
    close: () => db.destroy(),
  };
}
const plugins = [new CamelCasePlugin()]; // Renames columns: not those of our own statements.

ormSuite<any>('Kysely', {
  async postgres({ url }) {
    const pool = new pg.Pool({ connectionString: url, max: 8 });
    pool.on('error', () => undefined);
    return opened(new Kysely({ dialect: new PostgresDialect({ pool }), plugins }));
  },
  async mysql({ url }) {
    const pool = createPool({ uri: url, connectionLimit: 8 });
    return opened(new Kysely({ dialect: new MysqlDialect({ pool }), plugins }));
  },
  async sqlite({ url }) {
    return opened(
      new Kysely({ dialect: new SqliteDialect({ database: new Database(url) }), plugins }),
    );
  },
});
