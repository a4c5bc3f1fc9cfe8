/** Enter and check on real databases, one set of laws for all dialects. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPool as createMysqlPool } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SqlAnswer, SqlDatabase, SqlSession } from '../../src/contract/index.ts';
import { fencedRows, fenceMarks, sqlFenceGuard } from '../../src/fence/index.ts';
import { postgresSession } from '../../src/stores/postgres/index.ts';
import { pause } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { createMariadbDatabase } from '../support/mariadb.ts';
import { createDatabase, createPool } from '../support/postgres.ts';
import { describeWith } from '../support/servers.ts';
import { mysqlSession, openSqlite, type Sqlite, sqliteSession } from './sessions.ts';

/** A database with one connection per transaction. */
interface Target {
  readonly name: string;
  /** Can two transactions be open at once? */
  readonly concurrent: boolean;
  open(): Promise<Omit<SqlDatabase, 'query'> & { close(): Promise<void> }>;
}

const postgres: Target = {
  name: 'PostgreSQL',
  concurrent: true,
  async open() {
    const database = await createDatabase({ migrated: false });
    const pool = createPool(database.url);
    return {
      dialect: 'postgres',
      session: postgresSession,
      async transaction(work) {
        const client = await pool.connect();
        try {
          return await around(postgresSession(client), client, work);
        } finally {
          client.release();
        }
      },
      async close() {
        await pool.end();
        await database.drop();
      },
    };
  },
};

/** `changedRows`: the server counts only rows that became different. */
function mariadb(changedRows: boolean): Target {
  return {
    name: `MariaDB counting ${changedRows ? 'changed' : 'found'} rows`,
    concurrent: true,
    async open() {
      const database = await createMariadbDatabase();
      const flags = changedRows ? ['-FOUND_ROWS'] : [];
      const pool = createMysqlPool({ uri: database.url, connectionLimit: 5, flags });
      return {
        dialect: 'mysql',
        session: (tx) => mysqlSession(tx as never),
        async transaction(work) {
          const connection = await pool.getConnection();
          try {
            return await around(mysqlSession(connection), connection, work);
          } finally {
            connection.release();
          }
        },
        async close() {
          await pool.end();
          await database.drop();
        },
      };
    },
  };
}

const sqlite: Target = {
  name: 'SQLite',
  concurrent: false,
  async open() {
    const db = openSqlite(':memory:') as NonNullable<ReturnType<typeof openSqlite>>;
    const session = sqliteSession(db);
    return {
      dialect: 'sqlite',
      session: () => session,
      transaction: (work) => around(session, db, work),
      async close() {
        db.close();
      },
    };
  },
};

async function around<T>(
  session: SqlSession,
  tx: unknown,
  work: (session: SqlSession, tx: unknown, first: readonly SqlAnswer[]) => Promise<T>,
): Promise<T> {
  await session.query('BEGIN', []);
  try {
    const value = await work(session, tx, []);
    await session.query('COMMIT', []);
    return value;
  } catch (error) {
    await session.query('ROLLBACK', []);
    throw error;
  }
}

describeWith('postgres', 'fences in PostgreSQL', () => laws(postgres));
describeWith('mariadb', 'fences in MariaDB', () => {
  laws(mariadb(false));
  laws(mariadb(true));
});
const built = openSqlite(':memory:');
if (built === undefined && process.env['CI']) throw new Error('better-sqlite3 is not built');
if (built === undefined) console.warn('SKIPPED: fences in SQLite');
built?.close();
describe.skipIf(built === undefined)('fences in SQLite', () => {
  laws(sqlite);

  it('nobody enters from another connection between a check and its commit', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'turngate-fence-'));
    const [mine, other] = [1, 2].map(() => openSqlite(join(folder, 'data.db')) as Sqlite);
    const marks = fenceMarks();
    const rows = fencedRows({ table: 'account' });
    try {
      mine?.exec(`PRAGMA journal_mode = WAL; CREATE TABLE account (id text, n int, fence int);
        INSERT INTO account VALUES ('a', 0, 0); ${marks.createTable('sqlite')}`);
      other?.exec('PRAGMA busy_timeout = 0');
      const [here, there] = [sqliteSession(mine as Sqlite), sqliteSession(other as Sqlite)];
      const mark = await marks.enter(here, { resource: 'a', fence: 1n });
      const row = await rows.enter(here, { id: 'a', fence: 1n });
      for (const check of [() => mark.check(here), () => row?.check()]) {
        mine?.exec('BEGIN');
        await check();
        const entering = marks.enter(there, { resource: 'a', fence: 2n });
        await expect(entering).rejects.toMatchObject({ code: 'SQLITE_BUSY' });
        mine?.exec('COMMIT');
      }
    } finally {
      mine?.close();
      other?.close();
      rmSync(folder, { recursive: true });
    }
  });
});

function laws(target: Target): void {
  describe(`fences in ${target.name}`, () => {
    let db: Awaited<ReturnType<Target['open']>>;
    const accounts = fencedRows({ table: 'account' });
    const marks = fenceMarks();
    let count = 0;
    let id = '';
    const old = 2n ** 62n; // Longer than a double: old and young differ in the last bit only.
    const young = old + 1n;

    beforeAll(async () => {
      db = await target.open();
      await run('CREATE TABLE account (id varchar(40) PRIMARY KEY, balance int, fence bigint)');
      await run(marks.createTable(db.dialect));
      await run(marks.createTable(db.dialect)); // Safe to repeat.
    });
    afterAll(async () => {
      await db?.close();
    });
    beforeEach(async () => {
      id = `a${++count}`;
      await run('INSERT INTO account (id, balance, fence) VALUES ($1, 100, 0)', [id]);
    });

    async function run(text: string, values: string[] = []) {
      return await db.transaction((session) => session.query(text, values));
    }
    async function balance(): Promise<unknown> {
      return (await run('SELECT balance FROM account WHERE id = $1', [id])).rows[0]?.['balance'];
    }
    async function enterRow(fence: bigint) {
      const entry = await db.transaction((session) => accounts.enter(session, { id, fence }));
      if (entry === undefined) throw new Error('no row');
      return entry;
    }
    /** Has it settled by the time other statements got through? */
    async function waits(call: Promise<unknown>): Promise<boolean> {
      let settled = false;
      void call.finally(() => (settled = true)).catch(() => undefined);
      for (let i = 0; i < 10; i++) {
        await run('SELECT 1');
        await pause(5);
      }
      return !settled;
    }

    it('enter gives the row as it is and the write of the one who entered passes', async () => {
      await db.transaction(async (session) => {
        const entry = await accounts.enter(session, { id, fence: old });
        expect(entry?.row).toMatchObject({ id, balance: 100 });
        expect(Object.keys(entry?.row ?? {}).sort()).toEqual(['balance', 'fence', 'id']);
        await entry?.write({ balance: 90 });
        await entry?.write({ balance: 90 }); // The same again: no row becomes different.
      });
      expect(await balance()).toBe(90);
    });

    it('an older fence cannot enter; the same one can again', async () => {
      await enterRow(young);
      const error = await rejection(enterRow(old), 'FENCE_STALE');
      expect(error['outcome']).toBe('not-applied');
      expect(error.message).toContain(String(young));
      expect((await enterRow(young)).row['balance']).toBe(100);
    });

    it('who entered before loses every write once a newer one entered, and changes nothing', async () => {
      const late = await enterRow(old);
      await enterRow(young);
      const writes = [
        (session: SqlSession) => late.in(session).write({ balance: 1 }),
        (session: SqlSession) => late.in(session).write({ balance: 100 }), // Would change nothing.
        (session: SqlSession) => late.in(session).delete(),
        (session: SqlSession) => late.in(session).check(),
      ];
      for (const write of writes) await rejection(db.transaction(write), 'FENCE_STALE');
      expect(await balance()).toBe(100);
    });

    it('an entry goes on in later transactions and sees what came before it', async () => {
      const first = await enterRow(old);
      await db.transaction((session) => first.in(session).write({ balance: 70 }));
      const next = await enterRow(young);
      expect(next.row['balance']).toBe(70);
      await db.transaction(async (session) => {
        await next.in(session).check();
        await next.in(session).delete();
      });
      expect(await balance()).toBeUndefined();
      await rejection(
        db.transaction((session) => next.in(session).check()),
        'FENCE_STALE',
      );
    });

    it('a missing row is told apart from a newer holder; a null mark keeps nobody out', async () => {
      const missing = { id: 'nobody', fence: old };
      const answer = await db.transaction((session) => accounts.enter(session, missing));
      expect(answer).toBeUndefined();
      await run('UPDATE account SET fence = NULL WHERE id = $1', [id]);
      expect((await enterRow(old)).fence).toBe(old);
    });

    it('marks: enter, check in later transactions, refuse the older', async () => {
      const late = await db.transaction((s) => marks.enter(s, { resource: id, fence: old }));
      await db.transaction((session) => late.check(session));
      await db.transaction((session) => marks.enter(session, { resource: id, fence: young }));
      await rejection(
        db.transaction((session) => late.check(session)),
        'FENCE_STALE',
      );
      await rejection(
        db.transaction((s) => marks.enter(s, { resource: id, fence: old })),
        'FENCE_STALE',
      );
      await db.transaction((session) => marks.check(session, { resource: id, fence: young }));
    });

    it('marks: a check without an enter is refused, however new the fence', async () => {
      const never = { resource: `${id} never`, fence: young };
      await rejection(
        db.transaction((session) => marks.check(session, never)),
        'FENCE_STALE',
      );
      await db.transaction((s) => marks.enter(s, { resource: id, fence: old }));
      await rejection(
        db.transaction((session) => marks.check(session, { resource: id, fence: young })),
        'FENCE_STALE',
      );
    });

    it('a guard runs the body in the transaction of the mark and rolls back with it', async () => {
      const guard = sqlFenceGuard(db);
      const request = { resource: id, verb: 'enter', fence: old } as const;
      await guard.run(request, async (tx) => {
        await db.session(tx).query('UPDATE account SET balance = balance - 10 WHERE id = $1', [id]);
      });
      const failing = guard.run({ ...request, fence: young }, async () => {
        throw new Error('the body failed');
      });
      await expect(failing).rejects.toThrow('the body failed');
      await guard.run({ ...request, verb: 'check' }, async () => undefined); // Young never entered.
      expect(await balance()).toBe(90);
    });

    it.skipIf(!target.concurrent)(
      'nobody enters a row between a check and its commit',
      async () => {
        const late = await enterRow(old);
        let entering: Promise<unknown> = Promise.resolve();
        await db.transaction(async (session) => {
          await late.in(session).check();
          entering = enterRow(young);
          expect(await waits(entering)).toBe(true);
          await session.query('UPDATE account SET balance = 55 WHERE id = $1', [id]);
        });
        expect(await entering).toMatchObject({ row: { balance: 55 } });
      },
    );

    it.skipIf(!target.concurrent)(
      'nobody enters a resource between a check of its mark and its commit',
      async () => {
        const enter = (fence: bigint) =>
          db.transaction((session) => marks.enter(session, { resource: id, fence }));
        const late = await enter(old);
        let entering: Promise<unknown> = Promise.resolve();
        await db.transaction(async (session) => {
          await late.check(session);
          entering = enter(young);
          expect(await waits(entering)).toBe(true);
        });
        await entering;
      },
    );

    it.skipIf(!target.concurrent)(
      'enter waits for the holder that writes and then reads what it wrote',
      async () => {
        let entering: ReturnType<typeof enterRow> | undefined;
        await db.transaction(async (session) => {
          const entry = await accounts.enter(session, { id, fence: old });
          entering = enterRow(young);
          expect(await waits(entering)).toBe(true);
          await entry?.write({ balance: 42 });
        });
        expect((await entering)?.row['balance']).toBe(42);
      },
    );
  });
}
