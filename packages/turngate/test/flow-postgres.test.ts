/** Flows on PostgreSQL. */
import { PGlite } from '@electric-sql/pglite';
import type pg from 'pg';
import postgresJs from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { defineFlow, type FlowEvent, onEvent } from '../src/index.ts';
import { migrate, postgresSession } from '../src/stores/postgres/index.ts';
import { door, pause } from './support/clock.ts';
import {
  createDatabase,
  createPool,
  pgTransaction,
  serverUrl,
  type TestDatabase,
} from './support/postgres.ts';

const table = `CREATE TABLE shop_order (
  id bigint PRIMARY KEY, status varchar(20) NOT NULL, version int NOT NULL DEFAULT 1,
  note text, cents bigint, paid_at timestamptz)`;

const order = defineFlow(
  {
    name: 'order',
    table: 'shop_order',
    states: ['created', 'paid', 'shipped', 'cancelled'],
    transitions: {
      pay: { from: ['created'], to: 'paid' },
      ship: { from: ['paid'], to: 'shipped' },
      cancel: { from: ['created', 'paid'], to: 'cancelled' },
    },
  },
  postgresSession,
);

const insertOrder = 'INSERT INTO shop_order (id, status) VALUES ($1, $2)';

describe.skipIf(serverUrl === '')('a flow on PostgreSQL', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let id = '0';
  beforeAll(async () => {
    database = await createDatabase();
    pool = createPool(database.url, { max: 25 });
    await pool.query(table);
  });
  afterAll(async () => {
    await pool?.end();
    await database?.drop();
  });
  beforeEach(async () => {
    id = String(Number(id) + 1);
    await pool.query(insertOrder, [id, 'created']);
  });

  type Event = 'pay' | 'ship' | 'cancel';
  type Set = Parameters<typeof order.fire>[1]['set'];
  const fire = (event: Event, set?: Set) =>
    pgTransaction(pool, (tx) => order.fire(event, { tx, id, ...(set && { set }) }));

  async function row(): Promise<Record<string, unknown>> {
    const { rows } = await pool.query('SELECT * FROM shop_order WHERE id = $1', [id]);
    return rows[0];
  }

  async function history(): Promise<string[]> {
    const { rows } = await pool.query(
      `SELECT version || ' ' || event || ' ' || from_state || '>' || to_state AS line
       FROM turngate_transition WHERE flow = 'order' AND entity_id = $1 ORDER BY version`,
      [id],
    );
    return rows.map(({ line }) => line);
  }

  it('moves, says already for a repeat and for later states, refuses, and misses', async () => {
    expect(await fire('pay')).toEqual({
      kind: 'applied',
      from: 'created',
      to: 'paid',
      version: 2n,
    });
    expect(await fire('pay')).toEqual({ kind: 'already', state: 'paid' });
    expect(await fire('ship')).toMatchObject({ kind: 'applied', from: 'paid', version: 3n });
    expect(await fire('pay')).toEqual({ kind: 'already', state: 'shipped' });
    expect(await fire('cancel')).toEqual({ kind: 'refused', state: 'shipped' });
    id = '999999';
    expect(await fire('pay')).toEqual({ kind: 'missing' });
    id = String(1);
    expect(await history()).toEqual(['2 pay created>paid', '3 ship paid>shipped']);
  });

  it('changes other columns only if it moves', async () => {
    const paidAt = new Date(1_000);
    await fire('pay', { note: "it's $1", cents: 9_007_199_254_740_993n, paid_at: paidAt });
    expect(await row()).toMatchObject({
      status: 'paid',
      note: "it's $1",
      cents: '9007199254740993',
      paid_at: paidAt,
    });
    await fire('pay', { note: 'twice' });
    expect((await row())['note']).toBe("it's $1");
    await fire('ship', { note: null });
    expect(await row()).toMatchObject({ status: 'shipped', note: null, version: 3 });
  });

  it('state, history and the caller’s writes roll back together', async () => {
    const undo = new Error('undo');
    const call = pgTransaction(pool, async (tx) => {
      expect((await order.fire('pay', { tx, id })).kind).toBe('applied');
      throw undo;
    });
    await expect(call).rejects.toBe(undo);
    expect(await row()).toMatchObject({ status: 'created', version: 1 });
    expect(await history()).toEqual([]);
  });

  it('of 20 at once exactly one is applied, the others say already', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, () => fire('pay')));
    const kinds = results.map(({ kind }) => kind).sort();
    expect(kinds).toEqual([...Array<string>(19).fill('already'), 'applied'].sort());
    expect(await row()).toMatchObject({ status: 'paid', version: 2 });
    expect(await history()).toHaveLength(1);
  });

  it('of cancel and ship at once exactly one wins, never both', async () => {
    await fire('pay');
    const results = await Promise.all([fire('cancel'), fire('ship'), fire('cancel')]);
    expect(results.filter(({ kind }) => kind === 'applied')).toHaveLength(1);
    expect((await row())['version']).toBe(3);
  });

  it('an event that waited for the state it needs is applied, not refused', async () => {
    const moved = door();
    const held = door();
    const paying = pgTransaction(pool, async (tx) => {
      await order.fire('pay', { tx, id });
      moved.open();
      await held.opened;
    });
    await moved.opened;
    const shipping = fire('ship');
    await pause(50); // It now waits for the row.
    held.open();
    await paying;
    expect(await shipping).toMatchObject({ kind: 'applied', from: 'paid', version: 3n });
    expect(await history()).toEqual(['2 pay created>paid', '3 ship paid>shipped']);
  });

  it('works on an enum column and uuid keys in a schema', async () => {
    await pool.query(`CREATE SCHEMA sales; CREATE TYPE sales.phase AS ENUM ('open', 'closed');
      CREATE TABLE sales.deal (code uuid PRIMARY KEY, phase sales.phase NOT NULL, rev int NOT NULL);
      INSERT INTO sales.deal VALUES ('8e03978e-40d5-43dd-bc93-6894a57f9324', 'open', 0)`);
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
    const close = () =>
      pgTransaction(pool, (tx) =>
        deal.fire('close', { tx, id: '8e03978e-40d5-43dd-bc93-6894a57f9324' }),
      );
    expect(await close()).toMatchObject({ kind: 'applied', version: 1n });
    expect(await close()).toEqual({ kind: 'already', state: 'closed' });
  });

  it('tells what happened', async () => {
    const seen: FlowEvent[] = [];
    const stop = onEvent('flow', (event) => seen.push(event));
    await fire('pay');
    await fire('pay');
    stop();
    await fire('pay');
    expect(seen).toEqual([
      { type: 'applied', flow: 'order', event: 'pay', id },
      { type: 'already', flow: 'order', event: 'pay', id },
    ]);
  });

  it('works with postgres.js', async () => {
    const sql = postgresJs(database.url, { max: 1 });
    const pay = () =>
      sql.begin((tx) => order.fire('pay', { tx, id, set: { cents: 5n, paid_at: new Date(0) } }));
    expect(await pay()).toMatchObject({ kind: 'applied', version: 2n });
    expect(await pay()).toMatchObject({ kind: 'already' });
    expect(await row()).toMatchObject({ cents: '5', paid_at: new Date(0) });
    await sql.end();
  });
});

it('a flow works with PGlite', async () => {
  const db = new PGlite();
  await migrate(db);
  await db.query(table);
  await db.query(insertOrder, ['1', 'created']);
  const pay = () => db.transaction((tx) => order.fire('pay', { tx, id: '1', set: { cents: 5n } }));
  expect(await pay()).toMatchObject({ kind: 'applied', version: 2n });
  expect(await pay()).toEqual({ kind: 'already', state: 'paid' });
  await db.close();
});
