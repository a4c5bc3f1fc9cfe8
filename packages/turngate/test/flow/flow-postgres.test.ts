/** Flows on PostgreSQL. */
import { PGlite } from '@electric-sql/pglite';
import type pg from 'pg';
import postgresJs from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defineFlow } from '../../src/index.ts';
import { migrate, postgresSession } from '../../src/stores/postgres/index.ts';
import {
  createDatabase,
  createPool,
  pgTransaction,
  serverUrl,
  type TestDatabase,
} from '../support/postgres.ts';
import { type FlowTarget, flowLaws, orderFlow } from './flow-laws.ts';

const table = `CREATE TABLE shop_order (
  id bigint PRIMARY KEY, status varchar(20) NOT NULL, version int NOT NULL DEFAULT 1,
  note text, cents bigint, paid_at timestamptz)`;
const insertOrder = 'INSERT INTO shop_order (id, status) VALUES ($1, $2)';
const selectHistory = `SELECT version || ' ' || event || ' ' || from_state || '>' || to_state AS line
  FROM turngate_transition WHERE flow = 'order' AND entity_id = $1 ORDER BY version`;

async function open(): Promise<FlowTarget<pg.PoolClient>> {
  const database = await createDatabase();
  const pool = createPool(database.url, { max: 25 });
  await pool.query(table);
  return {
    insert: (id) => pool.query(insertOrder, [id, 'created']),
    async row(id) {
      const { rows } = await pool.query('SELECT * FROM shop_order WHERE id = $1', [id]);
      return rows[0];
    },
    async history(id) {
      const { rows } = await pool.query(selectHistory, [id]);
      return rows.map(({ line }) => line);
    },
    transaction: (body) => pgTransaction(pool, body),
    look: (tx) => tx.query('SELECT * FROM shop_order'),
    async close() {
      await pool.end();
      await database.drop();
    },
  };
}

describe.skipIf(serverUrl === '')('a flow on PostgreSQL', () => flowLaws(postgresSession, open));

describe.skipIf(serverUrl === '')('a flow on PostgreSQL besides', () => {
  const order = orderFlow(postgresSession);
  let database: TestDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await createDatabase();
    pool = createPool(database.url);
    await pool.query(table);
  });
  afterAll(async () => {
    await pool?.end();
    await database?.drop();
  });

  it('works on an enum column and uuid keys in a schema', async () => {
    const id = '8e03978e-40d5-43dd-bc93-6894a57f9324';
    await pool.query(`CREATE SCHEMA sales; CREATE TYPE sales.phase AS ENUM ('open', 'closed');
      CREATE TABLE sales.deal (code uuid PRIMARY KEY, phase sales.phase NOT NULL, rev int NOT NULL);
      INSERT INTO sales.deal VALUES ('${id}', 'open', 0)`);
    const deal = defineFlow(
      {
        name: 'deal',
        table: 'sales.deal',
        idColumn: 'code',
        stateColumn: 'phase',
        versionColumn: 'rev',
        states: ['open', 'closed'],
        transitions: { close: { from: ['open'], to: 'closed' } },
      },
      postgresSession,
    );
    const close = () => pgTransaction(pool, (tx) => deal.fire('close', { tx, id }));
    expect(await close()).toMatchObject({ kind: 'applied', version: 1n });
    expect(await close()).toEqual({ kind: 'already', state: 'closed' });
  });

  it('works with postgres.js', async () => {
    await pool.query(insertOrder, ['1', 'created']);
    const sql = postgresJs(database.url, { max: 1 });
    const set = { cents: 5n, paid_at: new Date(0) };
    const pay = () => sql.begin((tx) => order.fire('pay', { tx, id: '1', set }));
    expect(await pay()).toMatchObject({ kind: 'applied', version: 2n });
    expect(await pay()).toMatchObject({ kind: 'already' });
    const { rows } = await pool.query('SELECT cents, paid_at FROM shop_order');
    expect(rows).toEqual([{ cents: '5', paid_at: new Date(0) }]);
    await sql.end();
  });
});

it('a flow works with PGlite', async () => {
  const order = orderFlow(postgresSession);
  const db = new PGlite();
  await migrate(db);
  await db.query(table);
  await db.query(insertOrder, ['1', 'created']);
  const pay = () => db.transaction((tx) => order.fire('pay', { tx, id: '1', set: { cents: 5n } }));
  expect(await pay()).toMatchObject({ kind: 'applied', version: 2n });
  expect(await pay()).toEqual({ kind: 'already', state: 'paid' });
  await db.close();
});
