// biome-ignore-all lint/suspicious/noExplicitAny: better-sqlite3 brings no types.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { createGate, defineFlow, isTurngateError } from 'turngate';
import { recordStoreSuite } from 'turngate/conformance';
import { migrate, sqlite, sqliteDatabase, sqliteSession, sqliteStaged } from 'turngate/sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { folder, open } from './support.ts';

const claimOf = (key: string, fingerprint = '1.a') => ({
  id: { operation: 'law.test', scope: '-', key },
  fingerprint,
  owner: `owner-${key}-${Math.random()}`,
  retentionMs: 60_000,
});
const done = { state: 'done', result: '1"x"' } as const;

describe('SQLite', () => {
  let db: any;
  let outside: any;
  let file: string;
  beforeAll(async () => {
    ({ db, file } = await open('conformance.db'));
    outside = new Database(file);
  });
  afterAll(() => {
    db.close();
    outside.close();
  });

  recordStoreSuite(
    { describe, it },
    {
      name: 'SQLite',
      open: async () => sqlite(db),
      write: async (tx: any, line) => void tx.prepare('INSERT INTO effect VALUES (?)').run(line),
      written: async (prefix) =>
        outside
          .prepare('SELECT line FROM effect WHERE substr(line, 1, length(?1)) = ?1 ORDER BY line')
          .all({ 1: prefix })
          .map(({ line }: { line: string }) => line),
      ownTransaction: (body) => sqliteDatabase(db).transaction(async (_session, tx) => body(tx)),
      passTime: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      oneSession: 'one writer at a time, transactions queue',
    },
  );

  it('says that a file is durable and shared, and memory is neither', () => {
    expect(sqlite(db).capabilities).toEqual({
      atomicWithEffect: true,
      durable: true,
      shared: true,
    });
    const memory = new Database(':memory:');
    expect(sqlite(memory).capabilities).toMatchObject({ durable: false, shared: false });
    memory.close();
  });

  it('migrates once, also when several handles do it at the same time', async () => {
    const path = join(folder, 'migrate.db');
    const handles = [1, 2, 3].map(() => new Database(path));
    const reports = await Promise.all(handles.map((handle) => migrate(handle)));
    expect(reports.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
    expect(new Set(reports.map(({ version }) => version)).size).toBe(1);
    for (const handle of handles) handle.close();
  });

  it('two handles of one process: the second waits for the first without blocking it', async () => {
    const second = new Database(file);
    const order: string[] = [];
    const slow = sqlite(db).attempt(claimOf('slow'), async () => {
      await new Promise((resolve) => setTimeout(resolve, 150));
      order.push('slow');
      return done;
    });
    const startMs = performance.now();
    const fast = await sqlite(second).attempt(claimOf('fast'), async () => {
      order.push('fast');
      return done;
    });
    expect(fast.kind).toBe('ran');
    expect((await slow).kind).toBe('ran');
    expect(order).toEqual(['slow', 'fast']);
    expect(performance.now() - startMs).toBeLessThan(4_000);
    second.close();
  });

  it('a writer elsewhere that does not end is STORE_UNAVAILABLE after the limit', async () => {
    outside.exec('BEGIN IMMEDIATE');
    const store = sqlite(db, { answerLimitMs: 200 });
    const failing = store.attempt(claimOf('blocked'), async () => done);
    await expect(failing).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    outside.exec('ROLLBACK');
    expect((await store.attempt(claimOf('blocked'), async () => done)).kind).toBe('ran');
    expect(db.pragma('busy_timeout', { simple: true })).toBe(5_000);
  });

  it('a call to the store from inside its own transaction is refused instead of waiting for itself', async () => {
    const store = sqlite(db);
    for (const nested of [
      () => store.read(claimOf('inner').id),
      () => store.attempt(claimOf('inner'), async () => done),
      () => sqliteDatabase(db).query('SELECT 1 AS one', []),
    ]) {
      const outer = store.attempt(claimOf('outer'), async () => {
        await nested();
        return done;
      });
      await expect(outer).rejects.toMatchObject({ code: 'OPERATION_NESTED' });
    }
    expect(await store.read(claimOf('outer').id)).toBeUndefined();
  });

  it('a handler that ends the transaction is told so, and no record is made', async () => {
    const store = sqlite(db);
    const ending = store.attempt(claimOf('ender'), async (tx: any) => {
      tx.exec('COMMIT');
      return done;
    });
    await expect(ending).rejects.toMatchObject({
      code: 'TRANSACTION_REQUIRED',
      outcome: 'unknown',
    });
    expect(await store.read(claimOf('ender').id)).toBeUndefined();
  });

  it('within() on a handle that has no transaction open is TRANSACTION_REQUIRED', async () => {
    const late = sqlite(db).within(db, claimOf('late'), async () => done);
    await expect(late).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' });
    const session = sqliteSession(db) as never;
    const byText = sqlite(db).within(session, claimOf('late'), async () => done);
    await expect(byText).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' });
    expect(db.inTransaction).toBe(false);
  });

  it('a caller’s transaction with an outdated snapshot is a conflict, not a second run', async () => {
    const store = sqlite(db);
    db.exec('BEGIN');
    db.prepare('SELECT count(*) FROM effect').get();
    outside.prepare('INSERT INTO effect VALUES (?)').run('meanwhile');
    let runs = 0;
    const late = store.within(db, claimOf('snapshot'), async () => {
      runs++;
      return done;
    });
    await expect(late).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' });
    db.exec('ROLLBACK');
    expect(runs).toBe(0);
  });

  it('whole numbers are bound as whole numbers, also into TEXT, and come back exact', async () => {
    const { db: own } = await open('numbers.db');
    own.exec('CREATE TABLE loose (t TEXT, n INTEGER)');
    const database = sqliteDatabase(own);
    const big = 9_007_199_254_740_993n;
    await database.query('INSERT INTO loose (t, n) VALUES ($2, $1)', [big, 7]);
    const { rows } = await database.query("SELECT t, n, '$1' AS s FROM loose WHERE n = $1", [big]);
    expect(rows).toEqual([{ t: '7', n: big, s: '$1' }]);
    own.close();
  });

  it('missing tables are STORE_SCHEMA_MISSING', async () => {
    const empty = new Database(join(folder, 'empty.db'));
    const failing = sqlite(empty).attempt(claimOf('x'), async () => done);
    await expect(failing).rejects.toMatchObject({ code: 'STORE_SCHEMA_MISSING' });
    expect(empty.inTransaction).toBe(false);
    empty.close();
  });

  it('a flow moves a row once and notes it', async () => {
    const { db: own } = await open('flow.db');
    own.exec(`CREATE TABLE orders (id TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL,
      version INTEGER NOT NULL, note TEXT) STRICT`);
    own.exec("INSERT INTO orders VALUES ('o1', 'NEW', 0, NULL)");
    const flow = defineFlow(
      {
        name: 'order',
        table: 'orders',
        idColumn: 'id',
        stateColumn: 'state',
        versionColumn: 'version',
        states: ['NEW', 'PAID', 'CLOSED'],
        transitions: { pay: { from: ['NEW'], to: 'PAID' }, close: { from: ['NEW'], to: 'CLOSED' } },
      } as never,
      sqliteSession,
    ) as any;
    const fire = (event: string, id = 'o1') =>
      sqliteDatabase(own).transaction(async (_session, tx) =>
        flow.fire(event, { tx, id, set: { note: `by ${event}` } }),
      );
    expect(await fire('pay')).toMatchObject({ kind: 'applied', version: 1n });
    expect(await fire('pay')).toMatchObject({ kind: 'already' });
    expect(await fire('close')).toMatchObject({ kind: 'refused' });
    expect(await fire('pay', 'o2')).toMatchObject({ kind: 'missing' });
    expect(own.prepare('SELECT * FROM orders').get()).toMatchObject({
      state: 'PAID',
      note: 'by pay',
    });
    expect(own.prepare('SELECT count(*) AS n FROM turngate_transition').get()).toEqual({ n: 1 });
    own.close();
  });

  it('an operation on SQLite: first, repeat, mismatch, refusal, 50 at once', async () => {
    const gate = createGate({ records: sqlite(db) });
    let runs = 0;
    const pay = gate.operation({
      name: 'order.pay',
      scope: () => 'shop',
      key: ({ key }: { key: string; amount: number }) => key,
      fingerprint: ({ amount }: { amount: number }) => ({ amount }),
      async run(_input: unknown, { tx }: any) {
        tx.prepare('INSERT INTO effect VALUES (?)').run(`pay ${++runs}`);
        return { run: runs };
      },
    } as never) as any;
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, () => pay({ key: 'k', amount: 1 })),
    );
    expect(runs).toBe(1);
    expect(outcomes.filter(({ replayed }: any) => !replayed)).toHaveLength(1);
    const other = pay({ key: 'k', amount: 2 });
    await expect(other).rejects.toSatisfy(
      (error) => isTurngateError(error) && error.code === 'IDEMPOTENCY_KEY_REUSED',
    );
  });

  it('a staged operation on SQLite: steps once over a crash of the work, result once', async () => {
    const gate = createGate({ records: sqlite(db), staged: sqliteStaged(db), memoryCharsMax: 0 });
    let asked = 0;
    let failures = 1;
    const ship = gate.stagedOperation({
      name: 'order.ship',
      key: (key: string) => key,
      async run(key: string, { step }: any) {
        const paid = await step('charge', async () => `paid ${++asked}`);
        await step('book', { tx: true }, async (tx: any) => {
          tx.prepare('INSERT INTO effect VALUES (?)').run(`book ${key}`);
        });
        if (failures-- > 0) throw new Error('crash');
        return { paid };
      },
    } as never) as any;
    await expect(ship('s1')).rejects.toThrow();
    const results = [await ship('s1'), await ship('s1')];
    expect(results.map(({ value }) => value)).toEqual([{ paid: 'paid 1' }, { paid: 'paid 1' }]);
    expect(results[1].replayed).toBe(true);
    const lines = outside.prepare("SELECT count(*) AS n FROM effect WHERE line = 'book s1'");
    expect(lines.get()).toEqual({ n: 1 });
    await gate.close();
  });

  it('operators list and remove records', async () => {
    const { db: own } = await open('admin.db');
    const store = sqlite(own);
    for (const key of ['a', 'b', 'c']) await store.attempt(claimOf(key), async () => done);
    const page = await store.admin?.list({ operation: 'law.test', limit: 2 });
    expect(page?.records).toHaveLength(2);
    const rest = await store.admin?.list({ limit: 2, after: page?.cursor as string });
    expect(rest?.records).toHaveLength(1);
    expect(await store.admin?.remove(claimOf('a').id)).toBe(true);
    expect(await store.read(claimOf('a').id)).toBeUndefined();
    own.close();
  });

  it('four processes on one file: every increment once, every shared key once', async () => {
    const { db: own, file: path } = await open('processes.db');
    own.exec('CREATE TABLE counter (n INTEGER NOT NULL) STRICT; INSERT INTO counter VALUES (0)');
    const rounds = 40;
    const child = fileURLToPath(new URL('./sqlite-child.mjs', import.meta.url));
    const outputs = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name) => run([child, path, name, String(rounds)])),
    );
    expect(own.prepare('SELECT n FROM counter').get()).toEqual({ n: 4 * rounds + rounds });
    // All four were told the same first doer of each shared key.
    expect(new Set(outputs).size).toBe(1);
    own.close();
  });
});

function run(args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const process_ = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    let errors = '';
    process_.stdout.on('data', (chunk) => (out += chunk));
    process_.stderr.on('data', (chunk) => (errors += chunk));
    process_.on('close', (code) => (code === 0 ? resolve(out) : reject(new Error(errors))));
  });
}
