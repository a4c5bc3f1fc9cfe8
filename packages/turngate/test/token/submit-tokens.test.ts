import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SqlSession } from '../../src/contract/sql-session.ts';
import { createSubmitTokens, type GivenToken, submitTokenDigest } from '../../src/token/index.ts';
import { pause } from '../support/clock.ts';
import { databasesAndLevels, type OpenDatabase } from '../support/databases.ts';
import { rejection } from '../support/errors.ts';

const purpose = { operation: 'order.create', subject: 'user:7' };

for (const kind of databasesAndLevels) {
  describe.skipIf(kind.missing)(`submit tokens on ${kind.name}`, () => {
    let open: OpenDatabase;
    const tokens = (options: object = {}) =>
      createSubmitTokens({ database: open.database, ...options });
    const effects = async (): Promise<number> =>
      Number((await open.database.query('SELECT count(*) AS n FROM effect', [])).rows[0]?.['n']);
    /** The whole of a submit: token and effect in one transaction, again after a rollback by the server. */
    async function submit(given: GivenToken, then?: (sql: SqlSession) => Promise<void>) {
      for (;;) {
        try {
          return await open.database.transaction(async (sql) => {
            await tokens().consume(sql, given);
            await sql.query('INSERT INTO effect (line) VALUES ($1)', [given.token]);
            await then?.(sql);
            return 'done';
          });
        } catch (error) {
          const { code, cause } = error as { code?: string; cause?: { code?: string } };
          if (!['40001', 'ER_LOCK_DEADLOCK', 'ER_CHECKREAD'].includes(cause?.code ?? code ?? ''))
            throw error;
        }
      }
    }

    beforeAll(async () => {
      open = await kind.open();
    });
    afterAll(() => open?.close());

    it('a token is good once: the effect happens, and a repeat is told when', async () => {
      const before = await effects();
      const issued = await tokens().issue(purpose);
      expect(issued.token).toMatch(/^[A-Za-z0-9_-]{22}$/);
      const leftMs = issued.expiresAt.getTime() - Date.now();
      expect(Math.abs(leftMs - 30 * 60_000)).toBeLessThan(5_000);
      await submit({ ...purpose, token: issued.token });
      const error = await rejection(submit({ ...purpose, token: issued.token }), 'REPEATED_SUBMIT');
      const at = (error as unknown as { firstProcessedAt: Date }).firstProcessedAt;
      expect(Math.abs(at.getTime() - Date.now())).toBeLessThan(5_000);
      expect(await effects()).toBe(before + 1);
    });

    it('of many submits of one token at once one has its effect, the others are repeats', async () => {
      const before = await effects();
      const { token } = await tokens().issue(purpose);
      const ends = await Promise.allSettled(
        Array.from({ length: 20 }, () => submit({ ...purpose, token })),
      );
      const failed = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason.code] : []));
      expect(failed).toEqual(Array(19).fill('REPEATED_SUBMIT'));
      expect(await effects()).toBe(before + 1);
    });

    it('a rollback leaves the token usable, also for somebody who waits for it', async () => {
      const before = await effects();
      const { token } = await tokens().issue(purpose);
      const given = { ...purpose, token };
      let fail!: () => void;
      let begun!: () => void;
      const running = new Promise<void>((resolve) => {
        begun = resolve;
      });
      const first = submit(given, async () => {
        begun();
        await new Promise<void>((resolve) => {
          fail = resolve;
        });
        throw new Error('no stock');
      });
      const outcome = first.catch((error: Error) => error.message);
      await running;
      const second = submit(given);
      await pause(50); // The second may be waiting by now; the law holds if it is not.
      fail();
      expect(await outcome).toBe('no stock');
      expect(await second).toBe('done');
      expect(await effects()).toBe(before + 1);
    });

    it('an unknown, malformed, expired, other user’s or other operation’s token is refused', async () => {
      const before = await effects();
      const { token } = await tokens().issue(purpose);
      const short = await tokens({ ttlMs: 1_000 }).issue(purpose);
      const bad: GivenToken[] = [
        { ...purpose, token: 'A'.repeat(22) },
        { ...purpose, token: '' },
        { ...purpose, token: `${token} ` },
        { ...purpose, token: undefined as unknown as string },
        { ...purpose, token, subject: 'user:8' },
        { ...purpose, token, operation: 'order.pay' },
      ];
      for (const given of bad) await rejection(submit(given), 'SUBMIT_TOKEN_INVALID');
      await pause(short.expiresAt.getTime() - Date.now() + 100);
      await rejection(submit({ ...purpose, token: short.token }), 'SUBMIT_TOKEN_INVALID');
      expect(await effects()).toBe(before);
      await submit({ ...purpose, token });
    });

    it('the database keeps neither token nor subject', async () => {
      const { token } = await tokens().issue(purpose);
      const { rows } = await open.database.query('SELECT * FROM turngate_submit_token', []);
      expect(JSON.stringify(rows)).not.toContain(token);
      expect(JSON.stringify(rows)).not.toContain(purpose.subject);
      const digest = submitTokenDigest({ ...purpose, token });
      expect(rows.map((row) => row['digest'])).toContain(digest);
    });

    it('purge deletes what is older than the memory, in batches, and nothing that may be spent', async () => {
      const short = tokens({ ttlMs: 1_000, memoryMs: 1_000 });
      const old = await Promise.all(Array.from({ length: 5 }, () => short.issue(purpose)));
      const { token } = await tokens().issue(purpose);
      await pause((old[4]?.expiresAt.getTime() ?? 0) + 1_000 - Date.now() + 200);
      expect(await short.purge({ batchRows: 2, batches: 1 })).toBe(2);
      expect(await short.purge({ batchRows: 2, batches: 10 })).toBeGreaterThanOrEqual(3);
      expect(await short.purge()).toBe(0);
      expect(await submit({ ...purpose, token })).toBe('done');
    });

    it('options and purposes are checked before anything is sent', async () => {
      expect(() => tokens({ ttlMs: 1 })).toThrow(/ttlMs/);
      expect(() => tokens({ ttl: 1 })).toThrow(/unknown option/);
      await rejection(tokens().issue({ operation: 'X', subject: 'u' }), 'OPTION_INVALID');
      await rejection(tokens().issue({ operation: 'x', subject: '' }), 'OPTION_INVALID');
      await rejection(tokens().purge({ batchRows: 0 }), 'OPTION_INVALID');
    });
  });
}
