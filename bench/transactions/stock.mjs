// One hot item: 16 segments against the single row everybody queues for.
import { randomUUID } from 'node:crypto';
import { postgresDatabase } from 'turngate/postgres';
import { createStock } from 'turngate/stock';
import { openPg, overNetworks } from '../lib/sql-suite.mjs';

const CONNECTIONS = 32;
const UNITS = 100_000_000;

const hold = (sql) =>
  sql.query('INSERT INTO bench_hold (id, units) VALUES ($1, 1)', [randomUUID()]);

async function decrement(sql) {
  const { affectedRows } = await sql.query(
    "UPDATE bench_item SET units_left = units_left - 1 WHERE item = 'hot' AND units_left >= 1",
    [],
  );
  if (affectedRows !== 1) throw new Error('sold out');
}

/** The one row and a reservation, in one transaction, in the order given. No quota, no repeats. */
const singleRow =
  (...parts) =>
  ({ database }) => ({
    call: () =>
      database.transaction(async (sql) => {
        for (const part of parts) await part(sql);
        return 'held';
      }),
  });

const segmented =
  (item) =>
  ({ database }) => {
    const stock = createStock();
    return {
      async call() {
        const reservationId = randomUUID();
        const wish = { reservationId, item, units: 1, holder: reservationId };
        const { kind } = await database.transaction((sql) => stock.reserve(sql, wish));
        return kind === 'held' ? kind : undefined;
      },
    };
  };

const variant = (id, label, open) => ({ id, label, open });

const scenario = {
  id: 'stock',
  title: 'One hot item, 32 connections, PostgreSQL',
  requests: () => ({ next: () => undefined }),
  inFlight: CONNECTIONS,
  calls: 500,
  base: variant('single-row', 'one row, taken first', singleRow(decrement, hold)),
  variants: [
    variant('single-row-last', 'one row, taken last', singleRow(hold, decrement)),
    variant('turngate-stock-one', 'Turngate, 1 segment', segmented('one')),
    variant('turngate-stock', '**Turngate**, 16 segments', segmented('sixteen')),
  ],
};

const goal = (network, what) => ({
  table: `stock-${network}`,
  row: 'turngate-stock',
  key: 'opsPerSecond',
  atLeast: 3,
  what,
});

export const hotStock = {
  id: 'stock',
  title: 'Hot stock',
  goals: [
    goal('loopback', 'one hot item, 16 segments: reservations/s ÷ one row'),
    goal('rtt', 'the same at +2 ms'),
  ],
  async run(context) {
    const { postgres, admin } = context;
    await admin.query(`
      CREATE TABLE bench_item (item text PRIMARY KEY, units_left bigint NOT NULL);
      CREATE TABLE bench_hold (id text PRIMARY KEY, units bigint NOT NULL);
      INSERT INTO bench_item VALUES ('hot', ${UNITS})`);
    const database = postgresDatabase(admin);
    const stock = createStock();
    for (const [item, segments] of [
      ['one', 1],
      ['sixteen', 16],
    ]) {
      await database.transaction((sql) => stock.create(sql, { item, units: UNITS, segments }));
    }
    const terms = {
      reset: () => admin.query('TRUNCATE bench_hold'),
      open(url) {
        const pool = openPg(url, CONNECTIONS);
        return { database: postgresDatabase(pool), close: () => pool.end() };
      },
    };
    return await overNetworks(scenario, postgres, terms, context);
  },
};
