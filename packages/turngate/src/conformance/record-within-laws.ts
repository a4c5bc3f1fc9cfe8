/** Laws of `within`: the same in a transaction the caller owns. */
import assert from 'node:assert/strict';
import { isTurngateError } from '../core/errors.ts';
import {
  type AnyRecordTarget,
  claimOf,
  door,
  expectKind,
  freshId,
  neverRuns,
  writing,
} from './record-target.ts';
import type { Law } from './runner.ts';

const needsRivals = ({ oneSession }: AnyRecordTarget): string | undefined => oneSession;

/** What holds for records in the caller's transaction. */
export const recordWithinLaws: readonly Law<AnyRecordTarget>[] = [
  {
    name: 'within: effect, record and the caller’s own writes commit together',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const attempt = await target.ownTransaction(async (tx) => {
        await target.write(tx, `${id.key} before`);
        const ran = await store.within(tx, claimOf(id), writing(target, `${id.key} inside`));
        await target.write(tx, `${id.key} after`);
        return ran;
      });
      const { record } = expectKind(attempt, 'ran');
      assert.deepEqual(await store.read(id), record);
      assert.equal((await target.written(id.key)).length, 3);
    },
  },
  {
    name: 'within: the caller’s rollback takes effect and record with it and frees the key',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const undo = new Error('undo');
      const rolledBack = target.ownTransaction(async (tx) => {
        expectKind(await store.within(tx, claimOf(id), writing(target, id.key)), 'ran');
        throw undo;
      });
      await assert.rejects(rolledBack, (error) => error === undo);
      assert.equal(await store.read(id), undefined);
      assert.deepEqual(await target.written(id.key), []);
      expectKind(await store.attempt(claimOf(id), writing(target, id.key)), 'ran');
    },
  },
  {
    name: 'within: work that throws is undone alone when the caller swallows the error and commits',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const boom = new Error('boom');
      await target.ownTransaction(async (tx) => {
        await target.write(tx, `${id.key} before`);
        const failing = store.within(tx, claimOf(id), async () => {
          await target.write(tx, `${id.key} inside`);
          throw boom;
        });
        await assert.rejects(failing, (error) => error === boom);
        await target.write(tx, `${id.key} after`);
      });
      const lines = [...(await target.written(id.key))].sort();
      assert.deepEqual(lines, [`${id.key} after`, `${id.key} before`]);
      assert.equal(await store.read(id), undefined);
      expectKind(await store.attempt(claimOf(id), writing(target, id.key)), 'ran');
    },
  },
  {
    name: 'within: a refusal keeps the caller’s writes and drops those of the work',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      await target.ownTransaction(async (tx) => {
        await target.write(tx, `${id.key} before`);
        await store.within(tx, claimOf(id), async () => {
          await target.write(tx, `${id.key} inside`);
          return { state: 'refused', result: '1{"code":"NO"}' };
        });
      });
      assert.equal((await store.read(id))?.state, 'refused');
      assert.deepEqual(await target.written(id.key), [`${id.key} before`]);
    },
  },
  {
    name: 'within: a committed record is found, and the caller’s transaction stays usable',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const { record } = expectKind(
        await store.attempt(claimOf(id), writing(target, `${id.key} first`)),
        'ran',
      );
      await target.ownTransaction(async (tx) => {
        const seen = expectKind(await store.within(tx, claimOf(id), neverRuns), 'found');
        assert.deepEqual(seen.record, record);
        await target.write(tx, `${id.key} after`);
      });
      assert.equal((await target.written(id.key)).length, 2);
    },
  },
  {
    name: 'within: a repeat in the same transaction finds the uncommitted record',
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      await target.ownTransaction(async (tx) => {
        const { record } = expectKind(
          await store.within(tx, claimOf(id), writing(target, id.key)),
          'ran',
        );
        const again = expectKind(await store.within(tx, claimOf(id), neverRuns), 'found');
        assert.deepEqual(again.record, record);
      });
      assert.deepEqual(await target.written(id.key), [id.key]);
    },
  },
  {
    name: 'within: until the caller ends the transaction, everybody else is busy; then they find it',
    skipped: needsRivals,
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const ran = door();
      const held = door();
      const owner = target.ownTransaction(async (tx) => {
        await store.within(tx, claimOf(id), writing(target, id.key));
        ran.open();
        await held.opened;
      });
      await Promise.race([ran.opened, owner]);
      const busy = await store.attempt(claimOf(id), neverRuns);
      const busyWithin = await target.ownTransaction(async (tx) => {
        const seen = await store.within(tx, claimOf(id), neverRuns);
        await target.write(tx, `${id.key} other`);
        return seen;
      });
      held.open();
      await owner;
      expectKind(busy, 'busy');
      expectKind(busyWithin, 'busy');
      expectKind(await store.attempt(claimOf(id), neverRuns), 'found');
      assert.equal((await target.written(id.key)).length, 2);
    },
  },
  {
    name: 'within: a handle whose transaction has ended is refused with a typed error',
    skipped: ({ endedUnseen }) => endedUnseen,
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      let ended: unknown;
      await target.ownTransaction(async (tx) => {
        ended = tx;
      });
      const late = store.within(ended, claimOf(id), writing(target, id.key));
      await assert.rejects(late, (error) => isTurngateError(error));
      assert.equal(await store.read(id), undefined);
      assert.deepEqual(await target.written(id.key), []);
    },
  },
];
