/**
 * The barrier's table of decisions, checked by a generator: operations on each global transaction in
 * random order and concurrency, bodies that fail, on both databases and at both isolation levels.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SqlDatabase, SqlSession } from '../../src/contract/sql-session.ts';
import { isTurngateError } from '../../src/core/errors.ts';
import { systemRuntime } from '../../src/runtime/runtime.ts';
import { createBarrier } from '../../src/saga/barrier.ts';
import type { BranchOp } from '../../src/saga/branch.ts';
import { gidAt, newGid } from '../../src/saga/gid.ts';
import { databasesAndLevels, type OpenDatabase } from '../support/databases.ts';
import { chanceOf, checkBranches, gidCount, inLanes, randomJobs, seed } from './generator.ts';

const isConflict = (error: unknown): boolean => {
  const { code, errno } = (error ?? {}) as { code?: string; errno?: number };
  return ['40001', '40P01'].includes(code ?? '') || errno === 1213 || errno === 1205;
};

describe.each(databasesAndLevels)('the barrier on $name', (kind) => {
  describe.skipIf(kind.missing)('', () => {
    let opened: OpenDatabase;
    let database: SqlDatabase;
    const barrier = createBarrier();
    let retries = 0;

    beforeAll(async () => {
      opened = await kind.open(10);
      ({ database } = opened);
    });
    afterAll(() => opened.close());

    /** Every other call opens the transaction itself. */
    let calls = 0;

    /** One call in a transaction, tried again when the database asks for it. */
    async function call(gid: string, op: BranchOp, fails = false): Promise<string> {
      const branch = { gid, branch: 'b', op, payload: { units: 1 } };
      const body = async (sql: SqlSession): Promise<BranchOp> => {
        await sql.query('INSERT INTO effect (line) VALUES ($1)', [`${gid} ${op}`]);
        if (fails) throw new Error('the body fails');
        return op;
      };
      for (let tries = 0; ; tries++) {
        try {
          const ended =
            calls++ % 2 === 0
              ? barrier.transact(database, branch, body)
              : database.transaction((sql) => barrier.call(sql, branch, () => body(sql)));
          return (await ended).kind;
        } catch (error) {
          if (isTurngateError(error)) {
            if (error.code !== 'STORE_UNAVAILABLE' && !isConflict(error.cause)) return error.code;
          } else if (!isConflict(error)) return 'failed';
          if (tries > 50) throw error;
          retries++;
        }
      }
    }

    async function effects(gid: string): Promise<string[]> {
      const text = 'SELECT line FROM effect WHERE line LIKE $1 ORDER BY line';
      const { rows } = await database.query(text, [`${gid} %`]);
      return rows.map((row) => String(row['line']).slice(gid.length + 1));
    }

    async function state(gid: string): Promise<string> {
      const text = "SELECT state FROM turngate_branch WHERE gid = $1 AND branch = 'b'";
      return String((await database.query(text, [gid])).rows[0]?.['state'] ?? 'none');
    }

    it('lets a try happen once, a confirm or a cancel once, never both', async () => {
      const gid = newGid(systemRuntime);
      expect(await call(gid, 'confirm')).toBe('BRANCH_NOT_TRIED');
      expect(await call(gid, 'try')).toBe('ran');
      expect(await call(gid, 'try')).toBe('replayed');
      expect(await call(gid, 'confirm')).toBe('ran');
      expect(await call(gid, 'confirm')).toBe('replayed');
      expect(await call(gid, 'cancel')).toBe('BRANCH_CONFLICT');
      expect(await call(gid, 'try')).toBe('replayed');
      expect(await effects(gid)).toEqual(['confirm', 'try']);
    });

    it('makes a cancel before its try empty, and refuses the try that comes after', async () => {
      const gid = newGid(systemRuntime);
      expect(await call(gid, 'cancel')).toBe('empty');
      expect(await call(gid, 'cancel')).toBe('replayed');
      expect(await call(gid, 'try')).toBe('BRANCH_REFUSED');
      expect(await call(gid, 'confirm')).toBe('BRANCH_CONFLICT');
      expect(await effects(gid)).toEqual([]);
    });

    it('undoes a tried branch once; a try after that is refused', async () => {
      const gid = newGid(systemRuntime);
      await call(gid, 'try');
      const results = await Promise.all(Array.from({ length: 8 }, () => call(gid, 'cancel')));
      expect(results.filter((result) => result === 'ran')).toHaveLength(1);
      expect(await call(gid, 'try')).toBe('BRANCH_REFUSED');
      expect(await effects(gid)).toEqual(['cancel', 'try']);
    });

    it('leaves a branch as it was when its body fails, also when the caller commits all the same', async () => {
      const gid = newGid(systemRuntime);
      expect(await call(gid, 'try', true)).toBe('failed');
      expect(await state(gid)).toBe('none');
      await database.transaction(async (sql) => {
        const failing = barrier.call(sql, { gid, branch: 'b', op: 'try' }, async () => {
          await sql.query('INSERT INTO effect (line) VALUES ($1)', [`${gid} swallowed`]);
          throw new Error('swallowed');
        });
        await failing.catch(() => undefined);
      });
      expect([await state(gid), await effects(gid)]).toEqual(['none', []]);
      await call(gid, 'try');
      expect(await call(gid, 'confirm', true)).toBe('failed');
      expect(await state(gid)).toBe('TRIED');
    });

    it('answers a repeated try with its first result, another payload with a mismatch', async () => {
      const gid = newGid(systemRuntime);
      const attempt = (payload: unknown, value: unknown) =>
        database.transaction((sql) =>
          barrier.call(sql, { gid, branch: 'b', op: 'try', payload }, async () => value),
        );
      const at = new Date(0);
      expect(await attempt({ units: 1 }, { at })).toMatchObject({ kind: 'ran', value: { at } });
      expect(await attempt({ units: 1 }, 'other')).toMatchObject({
        kind: 'replayed',
        value: { at },
      });
      await expect(attempt({ units: 2 }, 'x')).rejects.toMatchObject({ code: 'BRANCH_MISMATCH' });
    });

    it('refuses a name older than what it remembers, without a look', async () => {
      const gid = gidAt(Date.now() - 31 * 86_400_000, 'old');
      expect(await call(gid, 'try')).toBe('GID_EXPIRED');
      expect(await state(gid)).toBe('none');
    });

    it(`holds under random order, concurrency and failing bodies (seed ${seed})`, async () => {
      const { names, jobs } = randomJobs(gidCount, chanceOf(seed));
      retries = 0;
      await inLanes(jobs, 8, ({ gid, op, fails }) => call(gid, op, fails));
      const counts = JSON.stringify(await checkBranches(database, names));
      const what = `${names.length} gids, ${jobs.length} operations, ${retries} retries`;
      process.stderr.write(`barrier on ${kind.name}: seed ${seed}, ${what}, ${counts}\n`);
    });
  });
});
