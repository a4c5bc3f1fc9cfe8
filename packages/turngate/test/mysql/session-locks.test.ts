/** GET_LOCK mode between two stores, as between two processes. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LockAttempt, LockGrant, LockStore } from '../../src/contract/index.ts';
import { mysqlSessionLocks } from '../../src/stores/mysql/index.ts';
import { until } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { describeWith } from '../support/servers.ts';
import { createDatabase, type TestDatabase } from './support.ts';

type Closing = LockStore & { close(): Promise<void> };

describeWith('mariadb', 'session locks of two processes', () => {
  let database: TestDatabase;
  const stores: Closing[] = [];
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await database?.drop();
  });
  function open(of: TestDatabase = database): Closing {
    const store = mysqlSessionLocks(of.pool({ connectionLimit: 1 }));
    stores.push(store);
    return store;
  }
  const attemptAt = (name: string, owner: string): LockAttempt => ({
    name,
    owner,
    leaseMs: 60_000,
  });

  it('exclude each other, with 4-byte characters in the name, and fences grow over both', async () => {
    const [a, b] = [open(), open()];
    const first = await a.tryAcquire(attemptAt('🙂 one', 'a'));
    expect((await b.tryAcquire(attemptAt('🙂 one', 'b'))).kind).toBe('held');
    expect((await b.inspect('🙂 one'))?.owner).toBe('a');
    expect(await b.release(attemptAt('🙂 one', 'b'))).toBe('taken');
    expect(await a.release(attemptAt('🙂 one', 'a'))).toBe('ours');
    const second = await b.tryAcquire(attemptAt('🙂 one', 'b'));
    if (first.kind !== 'granted' || second.kind !== 'granted') throw new Error('not granted');
    expect(second.fence).toBeGreaterThan(first.fence);
  });

  it('a killed connection frees its locks at once, and its holder is told', async () => {
    const [a, b] = [open(), open()];
    await a.tryAcquire(attemptAt('two', 'a'));
    const [rows] = await database.admin.query(
      `SELECT p.id FROM information_schema.processlist p
       WHERE p.db = DATABASE() AND p.id <> CONNECTION_ID()
       AND p.id = IS_USED_LOCK((SELECT CONCAT(LEFT(SHA2(LOWER(DATABASE()), 256), 12), 's',
         LEFT(SHA2(CONCAT('session', CHAR(0), 'two'), 256), 40))))`,
    );
    const [holder] = rows as { id: number }[];
    await database.admin.query(`KILL ${holder?.id}`);
    await until('the other gets it', async () => {
      return (await b.tryAcquire(attemptAt('two', 'b'))).kind === 'granted';
    });
    await rejection(a.renew([attemptAt('two', 'a')])).catch(() => undefined);
    expect(await a.renew([attemptAt('two', 'a')])).toEqual(['taken']);
    expect((await a.tryAcquire(attemptAt('two', 'a2'))).kind).toBe('held');
  });

  it('a lease that nobody renews ends, though its process and connection live on', async () => {
    const [a, b] = [open(), open()];
    const short = { ...attemptAt('lapse', 'a'), leaseMs: 300 };
    const first = await a.tryAcquire(short);
    expect((await b.tryAcquire(attemptAt('lapse', 'b'))).kind).toBe('held');
    expect(await a.renew([short])).toEqual(['ours']);
    let second: LockGrant | undefined;
    await until('the other gets it', async () => {
      second = await b.tryAcquire(attemptAt('lapse', 'b'));
      return second.kind === 'granted';
    });
    if (first.kind !== 'granted' || second?.kind !== 'granted') throw new Error('not granted');
    expect(second.fence).toBeGreaterThan(first.fence);
    expect(await a.renew([short])).toEqual(['taken']);
    expect(await a.release(short)).toBe('taken');
  });

  it('closing frees everything', async () => {
    const [a, b] = [open(), open()];
    await a.tryAcquire(attemptAt('three', 'a'));
    await a.close();
    expect((await b.tryAcquire(attemptAt('three', 'b'))).kind).toBe('granted');
  });

  it('the same name in another schema is another lock', async () => {
    const other = await createDatabase();
    const [a, b] = [open(), open(other)];
    expect((await a.tryAcquire(attemptAt('four', 'a'))).kind).toBe('granted');
    expect((await b.tryAcquire(attemptAt('four', 'b'))).kind).toBe('granted');
    await b.close();
    await other.drop();
  });
});
