import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGate } from '../src/index.ts';
import { migrate, postgres, postgresDatabase } from '../src/stores/postgres/index.ts';

const claimOf = (key: string) => ({
  id: { operation: 'law.test', scope: '-', key },
  fingerprint: '1.a',
  owner: `owner ${key}`,
  retentionMs: 60_000,
});
const done = { state: 'done', result: '1"x"' } as const;

describe('PGlite has one session', () => {
  let db: PGlite;
  beforeAll(async () => {
    db = new PGlite();
    await migrate(db);
  });
  afterAll(() => db.close());

  it('a call to the store from inside its own transaction is refused instead of never settling', async () => {
    const store = postgres(db);
    const database = postgresDatabase(db);
    const calls = [
      () => store.read(claimOf('inner').id),
      () => store.attempt(claimOf('inner'), async () => done),
      () => store.probe(claimOf('inner')),
      () => database.query('SELECT 1 AS one', []),
      () => database.transaction(async () => 1),
    ];
    for (const nested of calls) {
      const inside = async (): Promise<typeof done> => {
        await nested();
        return done;
      };
      const own = store.attempt(claimOf('outer'), inside);
      await expect(own).rejects.toMatchObject({ code: 'OPERATION_NESTED' });
      const callers = db.transaction((tx) => store.within(tx, claimOf('outer'), inside));
      await expect(callers).rejects.toMatchObject({ code: 'OPERATION_NESTED' });
      const plain = database.transaction(inside);
      await expect(plain).rejects.toMatchObject({ code: 'OPERATION_NESTED' });
    }
    expect(await store.read(claimOf('outer').id)).toBeUndefined();
  });

  it('the database in place of its transaction is TRANSACTION_REQUIRED, also inside one', async () => {
    const store = postgres(db);
    const late = db.transaction(() => store.within(db, claimOf('outer'), async () => done));
    await expect(late).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' });
  });

  it('one operation inside another’s transaction works by its handle', async () => {
    const gate = createGate({ records: postgres(db) });
    const inner = gate.operation({
      name: 'law.inner',
      key: (key: string) => key,
      run: async () => 'inner',
    });
    const outer = gate.operation({
      name: 'law.outer',
      key: (key: string) => key,
      run: async (key: string, { tx }) => (await inner.within(tx, key)).value,
    });
    expect((await outer('k')).value).toBe('inner');
    expect((await outer('k')).replayed).toBe(true);
  });

  it('calls from elsewhere wait for the transaction and are answered', async () => {
    const store = postgres(db);
    const running = store.attempt(claimOf('busy'), async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return done;
    });
    expect(await store.read(claimOf('other').id)).toBeUndefined();
    expect((await running).kind).toBe('ran');
  });
});
