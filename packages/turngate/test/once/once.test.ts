import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SqlSession } from '../../src/contract/sql-session.ts';
import { once, purgeVouchers, updateVersion } from '../../src/once/index.ts';
import { pause } from '../support/clock.ts';
import { databasesAndLevels, type OpenDatabase } from '../support/databases.ts';
import { rejection } from '../support/errors.ts';

/** What PostgreSQL says to the slower one at REPEATABLE READ. */
const lostRace = (error: { code?: string; cause?: { code?: string } }): boolean =>
  [error.code, error.cause?.code].some((code) => code === '40001' || code === 'ER_LOCK_DEADLOCK');

for (const kind of databasesAndLevels) {
  describe.skipIf(kind.missing)(`vouchers and versions on ${kind.name}`, () => {
    let open: OpenDatabase;
    beforeAll(async () => {
      open = await kind.open();
      await open.database.query(
        'CREATE TABLE article (id INT PRIMARY KEY, price INT NOT NULL, version BIGINT NOT NULL)',
        [],
      );
    });
    afterAll(() => open?.close());

    const transaction = async <T>(work: (sql: SqlSession) => Promise<T>): Promise<T> => {
      for (;;) {
        try {
          return await open.database.transaction(work);
        } catch (error) {
          if (!lostRace(error as object)) throw error;
        }
      }
    };
    let serial = 0;
    const freshVoucher = () => ({ name: 'points.order-paid', key: `o-${++serial}` });

    it('of many who ask for a voucher at once, in transactions of their own, one is the first', async () => {
      const voucher = freshVoucher();
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => transaction((sql) => once.voucher(sql, voucher))),
      );
      expect(answers.filter(Boolean)).toHaveLength(1);
      expect(await transaction((sql) => once.voucher(sql, voucher))).toBe(false);
    });

    it('asked twice in one transaction it is given once', async () => {
      const voucher = freshVoucher();
      const answers = await transaction(async (sql) => [
        await once.voucher(sql, voucher),
        await once.voucher(sql, voucher),
      ]);
      expect(answers).toEqual([true, false]);
    });

    it('a rollback gives it back', async () => {
      const voucher = freshVoucher();
      await expect(
        transaction(async (sql) => {
          expect(await once.voucher(sql, voucher)).toBe(true);
          throw new Error('no');
        }),
      ).rejects.toThrow('no');
      expect(await transaction((sql) => once.voucher(sql, voucher))).toBe(true);
    });

    it('names and keys that differ in any character are different vouchers', async () => {
      const salt = `v${++serial}`;
      const keys = [
        salt,
        salt.toUpperCase(),
        `${salt}é`,
        `${salt}e\u0301`,
        `${salt}ß`,
        `${salt}ss`,
      ];
      for (const key of keys) {
        expect(await transaction((sql) => once.voucher(sql, { name: 'a', key }))).toBe(true);
        expect(await transaction((sql) => once.voucher(sql, { name: 'b', key }))).toBe(true);
      }
    });

    it('purge deletes vouchers of that age, at most so many', async () => {
      await purgeVouchers(open.database, { ageMs: 1_000, limit: 100_000 });
      const keys = [freshVoucher(), freshVoucher(), freshVoucher()];
      for (const voucher of keys) await transaction((sql) => once.voucher(sql, voucher));
      await pause(1_100);
      const young = freshVoucher();
      await transaction((sql) => once.voucher(sql, young));
      expect(await purgeVouchers(open.database, { ageMs: 1_000, limit: 2 })).toBe(2);
      await purgeVouchers(open.database, { ageMs: 1_000 });
      expect(await transaction((sql) => once.voucher(sql, young))).toBe(false);
      expect(await transaction((sql) => once.voucher(sql, keys[0]!))).toBe(true);
      await rejection(purgeVouchers(open.database, { ageMs: 1 }), 'OPTION_INVALID');
      await rejection(purgeVouchers(open.database, {} as { ageMs: number }), 'OPTION_INVALID');
    });

    it('a change applies at the version that was read, and tells what it is otherwise', async () => {
      const id = ++serial;
      await open.database.query('INSERT INTO article VALUES ($1, 10, 5)', [id]);
      const change = (version: number, price: number, row = id) =>
        transaction((sql) =>
          updateVersion(sql, { table: 'article', id: { id: row }, version, set: { price } }),
        );
      expect(await change(5, 11)).toEqual({ kind: 'applied', version: 6 });
      expect(await change(5, 12)).toEqual({ kind: 'stale', version: 6 });
      // The same value again is a change all the same.
      expect(await change(6, 11)).toEqual({ kind: 'applied', version: 7 });
      expect(await change(6, 12, id + 1_000)).toEqual({ kind: 'missing' });
      const { rows } = await open.database.query(
        'SELECT price, version FROM article WHERE id = $1',
        [id],
      );
      expect([Number(rows[0]?.['price']), Number(rows[0]?.['version'])]).toEqual([11, 7]);
    });

    it('of many changes of one version at once one applies, the others are stale', async () => {
      const id = ++serial;
      await open.database.query('INSERT INTO article VALUES ($1, 10, 0)', [id]);
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, price) =>
          transaction((sql) =>
            updateVersion(sql, { table: 'article', id: { id }, version: 0, set: { price } }),
          ),
        ),
      );
      expect(results.filter(({ kind }) => kind === 'applied')).toHaveLength(1);
      expect(results.filter(({ kind }) => kind === 'stale')).toHaveLength(19);
    });

    it('a change with a bad name, or without an id, is refused before anything is sent', async () => {
      const good = { table: 'article', id: { id: 1 }, version: 0, set: { price: 1 } };
      for (const bad of [
        { ...good, table: 'article; --' },
        { ...good, id: {} },
        { ...good, set: { 'price = 0 --': 1 } },
        { ...good, set: { version: 1 } },
        { ...good, version: 1.5 },
      ]) {
        await rejection(
          transaction((sql) => updateVersion(sql, bad)),
          'OPTION_INVALID',
        );
      }
    });
  });
}
