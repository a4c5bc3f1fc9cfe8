/** Hot stock under many buyers: never oversold, never undersold, one per customer, no deadlock. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { SqlDatabase } from '../../src/contract/sql-session.ts';
import { createStock, type Reserve, type ReserveResult, rebalance } from '../../src/stock/index.ts';
import { postgresDatabase } from '../../src/stores/postgres/index.ts';
import { createDatabase, createPool, type TestDatabase } from '../support/postgres.ts';

describe.skipIf(inject('postgresUrl') === '')('hot stock', () => {
  let target: TestDatabase;
  let pool: pg.Pool;
  let database: SqlDatabase;
  let serial = 0;
  const stock = createStock();

  beforeAll(async () => {
    target = await createDatabase();
    pool = createPool(target.url, { max: 40 });
    database = postgresDatabase(pool) as SqlDatabase;
  });
  afterAll(async () => {
    await pool.end();
    await target.drop();
  });

  async function newItem(units: number, segments = 16): Promise<string> {
    const item = `item-${++serial}`;
    await database.transaction((sql) => stock.create(sql, { item, units, segments }));
    return item;
  }

  async function reserve(wish: Omit<Reserve, 'reservationId'> & { reservationId?: string }) {
    const reservationId = wish.reservationId ?? `r-${++serial}`;
    const result = await database.transaction((sql) =>
      stock.reserve(sql, { ...wish, reservationId }),
    );
    await stock.noteSoldOut(database, result);
    return result;
  }

  const state = async (item: string) => {
    const found = await stock.read(database, item);
    if (found === undefined) throw new Error(`no ${item}`);
    expect(found.left + found.held + found.settled).toBe(found.total);
    return found;
  };

  /** Runs all wishes with bounded parallelism. */
  async function flood<T>(count: number, make: (i: number) => Promise<T>): Promise<T[]> {
    const results: T[] = [];
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let i = next++; i < count; i = next++) results.push(await make(i));
    };
    await Promise.all(Array.from({ length: 40 }, worker));
    return results;
  }

  it('sells every unit and not one more to buyers of one, two and five', async () => {
    const item = await newItem(1_000);
    const sizes = [1, 2, 5];
    const results = await flood(900, async (i) => {
      const units = sizes[i % 3] as number;
      return { units, ...(await reserve({ item, units, holder: `u${i}` })) };
    });
    const sold = results
      .filter(({ kind }) => kind === 'held')
      .reduce((sum, { units }) => sum + units, 0);
    const { left, held } = await state(item);
    expect(held).toBe(sold);
    // Whatever is left is smaller than the smallest wish that was refused.
    const refused = results.filter(({ kind }) => kind === 'sold-out').map(({ units }) => units);
    expect(left).toBeLessThan(Math.min(...refused, 1_000));
  });

  it('keeps the segments apart under more buyers than segments: nobody locks all of them', async () => {
    const item = await newItem(16_000);
    await flood(1_000, (i) => reserve({ item, units: 1, holder: `u${i}` }));
    const { rows } = await pool.query(
      'SELECT 1000 - units_left AS sold FROM turngate_stock_segment WHERE item = $1',
      [item],
    );
    // Each sells about 63; whoever gathers empties the first one before the next.
    expect(Math.max(...rows.map(({ sold }) => Number(sold)))).toBeLessThan(150);
  });

  it('gathers fragments: whoever wants three gets one from each of three segments', async () => {
    const item = await newItem(3, 3);
    const result = await reserve({ item, units: 3, holder: 'u' });
    expect(result).toMatchObject({ kind: 'held' });
    expect(result.kind === 'held' && result.parts).toHaveLength(3);
    expect(await state(item)).toMatchObject({ left: 0, held: 3 });
  });

  it('holds once for one reservation id, whatever arrives together', async () => {
    const item = await newItem(100);
    const results = await flood(50, () =>
      reserve({ item, units: 1, holder: 'u', reservationId: `same-${item}` }),
    );
    expect(results.filter(({ kind }) => kind === 'held')).toHaveLength(1);
    expect(results.filter(({ kind }) => kind === 'already')).toHaveLength(49);
    expect(await state(item)).toMatchObject({ held: 1 });
  });

  it('keeps to the quota of each customer in a race of their own requests', async () => {
    const item = await newItem(1_000);
    const results = await flood(200, (i) =>
      reserve({ item, units: 2, holder: `u${i % 10}`, quota: 5 }),
    );
    expect(results.filter(({ kind }) => kind === 'held')).toHaveLength(20);
    expect(results.filter(({ kind }) => kind === 'over-quota')).toHaveLength(180);
    expect(await state(item)).toMatchObject({ held: 40 });
  });

  it('gives a hold back once, to be sold again; a settled one stays sold', async () => {
    const item = await newItem(2, 2);
    const act = (verb: 'settle' | 'release', id: string) =>
      database.transaction((sql) => stock[verb](sql, id));
    await reserve({ item, units: 1, holder: 'a', reservationId: `a-${item}`, quota: 1 });
    await reserve({ item, units: 1, holder: 'b', reservationId: `b-${item}` });
    expect((await reserve({ item, units: 1, holder: 'c' })).kind).toBe('sold-out');
    const released = await Promise.all(
      Array.from({ length: 10 }, () => act('release', `a-${item}`)),
    );
    expect(released.filter((result) => result === 'applied')).toHaveLength(1);
    expect(await act('settle', `a-${item}`)).toBe('refused');
    expect(await act('settle', `b-${item}`)).toBe('applied');
    expect(await act('settle', `b-${item}`)).toBe('already');
    expect(await act('release', `b-${item}`)).toBe('refused');
    expect(await act('release', 'nobody')).toBe('missing');
    expect((await reserve({ item, units: 1, holder: 'a', quota: 1 })).kind).toBe('held');
    expect(await state(item)).toMatchObject({ total: 2, left: 0, held: 1, settled: 1 });
  });

  it('says "sold out" without a lock once it is known, and takes it back when units come back', async () => {
    const item = await newItem(1, 4);
    await reserve({ item, units: 1, holder: 'a', reservationId: `k-${item}` });
    const counted = await reserve({ item, units: 1, holder: 'b' });
    expect(counted).toMatchObject({ kind: 'sold-out', left: 0 });
    expect((counted as Extract<ReserveResult, { kind: 'sold-out' }>).generation).toBeDefined();
    const known = await reserve({ item, units: 1, holder: 'c' });
    expect(known).toEqual({ kind: 'sold-out', item, left: 0, generation: undefined });
    await database.transaction((sql) => stock.add(sql, item, 3));
    expect((await reserve({ item, units: 3, holder: 'd' })).kind).toBe('held');
    await database.transaction((sql) => stock.release(sql, `k-${item}`));
    expect((await reserve({ item, units: 1, holder: 'e' })).kind).toBe('held');
  });

  it('a remembered "sold out" that is older than a release is not kept', async () => {
    const item = await newItem(1, 4);
    await reserve({ item, units: 1, holder: 'a', reservationId: `s-${item}` });
    const stale = await database.transaction((sql) =>
      stock.reserve(sql, { item, units: 1, holder: 'b', reservationId: `t-${item}` }),
    );
    await database.transaction((sql) => stock.release(sql, `s-${item}`));
    await stock.noteSoldOut(database, stale);
    expect((await reserve({ item, units: 1, holder: 'c' })).kind).toBe('held');
  });

  it('expires holds whose time is over, on several nodes at once, once each', async () => {
    const item = await newItem(30);
    for (let i = 0; i < 30; i++) {
      await reserve({ item, units: 1, holder: `u${i}`, reservationId: `x${i}-${item}` });
    }
    await database.transaction((sql) => stock.settle(sql, `x0-${item}`));
    await database.query('UPDATE turngate_reservation SET due_ms = 1 WHERE item = $1', [item]);
    const counts = await Promise.all(
      Array.from({ length: 4 }, () => stock.expireDue(database, 1_000)),
    );
    expect(counts.reduce((a, b) => a + b)).toBe(29);
    expect(await state(item)).toMatchObject({ left: 29, settled: 1, held: 0 });
  });

  it('rebalances under buyers without changing a sum', async () => {
    const item = await newItem(400);
    const [results] = await Promise.all([
      flood(300, (i) => reserve({ item, units: 1, holder: `u${i}` })),
      (async () => {
        for (let i = 0; i < 20; i++) await rebalance(database, item);
      })(),
    ]);
    expect(results.filter(({ kind }) => kind === 'held')).toHaveLength(300);
    expect(await state(item)).toMatchObject({ left: 100, held: 300 });
    expect(await rebalance(database, item)).toBe(13);
    expect((await reserve({ item, units: 8, holder: 'big' })).kind).toBe('held');
  });

  it('rolls a hold back with the transaction it was made in', async () => {
    const item = await newItem(5);
    const failed = database.transaction(async (sql) => {
      await stock.reserve(sql, { item, units: 5, holder: 'u', reservationId: `gone-${item}` });
      throw new Error('business says no');
    });
    await expect(failed).rejects.toThrow('business says no');
    expect(await state(item)).toMatchObject({ left: 5, held: 0 });
    const unknown = reserve({ item: 'nothing', units: 1, holder: 'u' });
    await expect(unknown).rejects.toMatchObject({ code: 'STOCK_ITEM_UNKNOWN' });
  });
});
