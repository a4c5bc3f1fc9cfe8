// biome-ignore-all lint/suspicious/noExplicitAny: each ORM has generics of its own, which no shared law can name.
import knex from 'knex';
import { knexTx } from 'turngate/orm';
import { ormSuite } from './laws.ts';
import { connectionOf, type Orm } from './world.ts';

function opened(client: string, connection: any, max: number): Orm<any> {
  const db = knex({ client, connection, pool: { min: 0, max }, useNullAsDefault: true });
  return {
    transaction: (body) => db.transaction(body) as any,
    session: (tx) => knexTx(tx),
    insert: async (tx, line) => tx('orm_effect').insert({ line }),
    outside: db,
    close: () => db.destroy(),
  };
}

ormSuite<any>('Knex', {
  postgres: async ({ url }) => opened('pg', url, 8),
  mysql: async ({ url }) => opened('mysql2', connectionOf(url), 8),
  sqlite: async ({ url }) => opened('better-sqlite3', { filename: url }, 1),
});
