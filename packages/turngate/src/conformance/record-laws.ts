/** Laws of `attempt`, `read`, `probe` and `purge`. */
import assert from 'node:assert/strict';
import { isTurngateError } from '../core/errors.ts';
import type { RecordId } from '../core/record-id.ts';
import {
  type AnyRecordTarget,
  claimOf,
  expectKind,
  freshId,
  neverRuns,
  startRunning,
  writing,
} from './record-target.ts';
import type { Law } from './runner.ts';

const needsAtomic = ({ notAtomic }: AnyRecordTarget): string | undefined => notAtomic;

const needsRivals = ({ oneSession }: AnyRecordTarget): string | undefined => oneSession;

/** What holds for records in transactions of the store's own. */
export const recordLaws: readonly Law<AnyRecordTarget>[] = [
  {
    name: 'of 50 attempts at one identity at once exactly one runs, the others find or are busy',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const attempts = await Promise.all(
        Array.from({ length: 50 }, () => store.attempt(claimOf(id), writing(target, id.key))),
      );
      const kinds = attempts.map(({ kind }) => kind);
      assert.equal(kinds.filter((kind) => kind === 'ran').length, 1, kinds.join());
      assert.ok(kinds.every((kind) => ['ran', 'found', 'busy'].includes(kind)));
      assert.deepEqual(await target.written(id.key), [id.key]);
    },
  },
  {
    name: 'effect and record become visible together, by the commit and not before',
    skipped: needsAtomic,
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const running = await startRunning(target, store, claimOf(id));
      if (target.oneSession === undefined) {
        assert.equal(await store.read(id), undefined);
        assert.deepEqual(await target.written(id.key), []);
      }
      const { record } = expectKind(await running.finish(), 'ran');
      assert.deepEqual(await store.read(id), record);
      assert.deepEqual(await target.written(id.key), [id.key]);
    },
  },
  {
    name: 'work that throws leaves nothing, its own error comes back and the key is free',
    skipped: needsAtomic,
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const boom = new Error('boom');
      const running = await startRunning(target, store, claimOf(id));
      await assert.rejects(running.finish(boom), (error) => error === boom);
      assert.equal(await store.read(id), undefined);
      assert.deepEqual(await target.written(id.key), []);
      expectKind(await store.attempt(claimOf(id), writing(target, id.key)), 'ran');
      assert.deepEqual(await target.written(id.key), [id.key]);
    },
  },
  {
    name: 'after the commit every attempt and read finds a record equal to the one that ran',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const claim = claimOf(id, { fingerprint: '1.abc', retentionMs: 120_000 });
      const result = '1{"text":"ünï \\u0000 🙂 \'quoted\' \\\\","n":1}';
      const { record } = expectKind(
        await store.attempt(claim, writing(target, id.key, result)),
        'ran',
      );
      const { owner, fingerprint } = claim;
      const { firstProcessedAtMs, expiresAtMs, ...rest } = record;
      assert.deepEqual(rest, { state: 'done', fingerprint, owner, result });
      assert.equal(expiresAtMs - firstProcessedAtMs, 120_000);
      const again = expectKind(await store.attempt(claimOf(id), neverRuns), 'found');
      assert.deepEqual(again.record, record);
      assert.deepEqual(await store.read(id), record);
    },
  },
  {
    name: 'an attempt at running work is busy, and says so when the payload is another',
    skipped: needsRivals,
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const running = await startRunning(target, store, claimOf(id, { fingerprint: '1.first' }));
      const same = await store.attempt(claimOf(id, { fingerprint: '1.first' }), neverRuns);
      assert.notEqual(expectKind(same, 'busy').sameFingerprint, false);
      const other = await store.attempt(claimOf(id, { fingerprint: '1.other' }), neverRuns);
      assert.notEqual(expectKind(other, 'busy').sameFingerprint, true);
      expectKind(await running.finish(), 'ran');
    },
  },
  {
    name: 'the record of other identities is not in the way while one runs',
    skipped: needsRivals,
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const running = await startRunning(target, store, claimOf(id));
      const neighbour = freshId();
      expectKind(await store.attempt(claimOf(neighbour), writing(target, neighbour.key)), 'ran');
      expectKind(await running.finish(), 'ran');
    },
  },
  {
    name: 'an expired record is gone for reads, and the next attempt runs and replaces it',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const short = claimOf(id, { fingerprint: '1.old', retentionMs: 100 });
      expectKind(await store.attempt(short, writing(target, `${id.key} first`)), 'ran');
      await target.passTime(150);
      assert.equal(await store.read(id), undefined);
      const next = claimOf(id, { fingerprint: '1.new' });
      const { record } = expectKind(
        await store.attempt(next, writing(target, `${id.key} second`)),
        'ran',
      );
      assert.deepEqual(await store.read(id), record);
      assert.equal((await target.written(id.key)).length, 2);
    },
  },
  {
    name: 'an expired record survives the rollback of the work that would replace it, unseen',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const short = claimOf(id, { retentionMs: 100 });
      expectKind(await store.attempt(short, writing(target, `${id.key} first`)), 'ran');
      await target.passTime(150);
      const boom = new Error('boom');
      const running = await startRunning(target, store, claimOf(id));
      await assert.rejects(running.finish(boom), (error) => error === boom);
      assert.equal(await store.read(id), undefined);
      expectKind(await store.attempt(claimOf(id), writing(target, `${id.key} third`)), 'ran');
    },
  },
  {
    name: 'a refusal is stored without the effects that led to it, and is found',
    skipped: needsAtomic,
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const refusing = async (tx: unknown): Promise<{ state: 'refused'; result: string }> => {
        await target.write(tx, id.key);
        return { state: 'refused', result: '1{"code":"NO"}' };
      };
      const { record } = expectKind(await store.attempt(claimOf(id), refusing), 'ran');
      assert.equal(record.state, 'refused');
      assert.deepEqual(await target.written(id.key), []);
      assert.deepEqual(
        expectKind(await store.attempt(claimOf(id), neverRuns), 'found').record,
        record,
      );
    },
  },
  {
    name: 'probe says free, busy while somebody works, found after the commit, and runs nothing',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      expectKind(await store.probe(claimOf(id)), 'free');
      expectKind(await store.probe(claimOf(id)), 'free');
      const running = await startRunning(target, store, claimOf(id));
      if (target.oneSession === undefined) expectKind(await store.probe(claimOf(id)), 'busy');
      const { record } = expectKind(await running.finish(), 'ran');
      assert.deepEqual(expectKind(await store.probe(claimOf(id)), 'found').record, record);
    },
  },
  {
    name: 'purge deletes expired records only, in batches, and says how many',
    skipped: ({ selfPurging }) => selfPurging,
    async prove(target) {
      const store = await target.open();
      await store.purge({ batchRows: 1_000, batches: 100 });
      const live = Array.from({ length: 8 }, () => freshId());
      const dead = Array.from({ length: 5 }, () => freshId());
      for (const id of live) await store.attempt(claimOf(id), writing(target, id.key));
      for (const id of dead) {
        await store.attempt(claimOf(id, { retentionMs: 100 }), writing(target, id.key));
      }
      await target.passTime(150);
      assert.equal(await store.purge({ batchRows: 2, batches: 1 }), 2);
      assert.equal(await store.purge({ batchRows: 2, batches: 10 }), 3);
      assert.equal(await store.purge({ batchRows: 2, batches: 10 }), 0);
      for (const id of live) assert.notEqual(await store.read(id), undefined);
    },
  },
  {
    name: 'identities that differ in any character are kept apart and come back unchanged',
    async prove(target) {
      const store = await target.open();
      const salt = freshId().key;
      const ids = awkwardIds(salt);
      for (const id of ids) {
        const work = writing(target, salt, `1${JSON.stringify(id)}`);
        expectKind(await store.attempt(claimOf(id), work), 'ran');
      }
      for (const id of ids) {
        assert.equal((await store.read(id))?.result, `1${JSON.stringify(id)}`);
      }
      assert.equal((await target.written(salt)).length, ids.length);
    },
  },
  {
    name: 'a rejected attempt carries a typed error of the store, or the error of the work',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const failing = store.attempt(claimOf(id), async () => {
        throw Object.assign(new Error('their service'), { code: 'ECONNREFUSED' });
      });
      // The handler's own trouble with another service is not the store's.
      await assert.rejects(failing, (error: Error) => !isTurngateError(error));
    },
  },
];

/** Pairs that databases have been seen to take for one. */
function awkwardIds(salt: string): RecordId[] {
  const keys = [
    `${salt}k`,
    `${salt}K`,
    `${salt}k é`,
    `${salt}k e\u0301`,
    `${salt}k\u00a0é`,
    `${salt}'; DROP TABLE turngate_record; --`,
    `${salt}"quoted"`,
    `${salt}$1`,
    `${salt}%`,
    `${salt}_`,
    `${salt}\\`,
    `${salt}\\\\`,
    `${salt}ß`,
    `${salt}ss`,
    `${salt}İ`,
    `${salt}i`,
    `${salt}🙂`,
    `${salt}${'a'.repeat(255 - salt.length)}`,
    `${salt}${'a'.repeat(254 - salt.length)}`,
    `${salt}${'é'.repeat(Math.floor((255 - salt.length) / 2))}`,
  ];
  return [
    ...keys.map((key) => freshId({ key })),
    freshId({ scope: `${salt}a:b`, key: 'c' }),
    freshId({ scope: `${salt}a`, key: 'b:c' }),
    freshId({ operation: 'law.one', scope: `${salt}t`, key: 'k' }),
    freshId({ operation: 'law.two', scope: `${salt}t`, key: 'k' }),
    freshId({ scope: `${salt}t2`, key: 'k' }),
    // No caller can send these past the border checks; the store must keep them apart all the same.
    freshId({ scope: `${salt}t`, key: 'k' }),
    freshId({ scope: `${salt}t`, key: 'k ' }),
    freshId({ scope: `${salt}t`, key: ' k' }),
  ];
}
