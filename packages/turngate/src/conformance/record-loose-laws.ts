/** Laws of a store whose records are not in one transaction with the work: what is left to promise. */
import assert from 'node:assert/strict';
import { isTurngateError } from '../core/errors.ts';
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

const skipped = ({ notAtomic }: AnyRecordTarget): string | undefined =>
  notAtomic === undefined ? 'work and record are one transaction' : undefined;

/** What holds instead of atomicity. */
export const recordLooseLaws: readonly Law<AnyRecordTarget>[] = [
  {
    name: 'the store says whether work and record are one transaction',
    async prove(target) {
      const { capabilities } = await target.open();
      assert.equal(capabilities.atomicWithEffect, target.notAtomic === undefined);
    },
  },
  {
    name: 'without a transaction: the record becomes visible when the work has ended, not before',
    skipped,
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const running = await startRunning(target, store, claimOf(id));
      assert.equal(await store.read(id), undefined);
      const { record } = expectKind(await running.finish(), 'ran');
      assert.deepEqual(await store.read(id), record);
    },
  },
  {
    name: 'without a transaction: work that throws leaves no record, its own error comes back, the key is free at once',
    skipped,
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const boom = new Error('boom');
      const running = await startRunning(target, store, claimOf(id));
      await assert.rejects(running.finish(boom), (error) => error === boom);
      assert.equal(await store.read(id), undefined);
      expectKind(await store.probe(claimOf(id)), 'free');
      expectKind(await store.attempt(claimOf(id), writing(target, id.key)), 'ran');
    },
  },
  {
    name: 'without a transaction: a refusal is stored and found; what was written before it stays',
    skipped,
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      const refusing = async (tx: unknown): Promise<{ state: 'refused'; result: string }> => {
        await target.write(tx, id.key);
        return { state: 'refused', result: '1{"code":"NO"}' };
      };
      const { record } = expectKind(await store.attempt(claimOf(id), refusing), 'ran');
      assert.equal(record.state, 'refused');
      const again = expectKind(await store.attempt(claimOf(id), neverRuns), 'found');
      assert.deepEqual(again.record, record);
      assert.deepEqual(await target.written(id.key), [id.key]);
    },
  },
  {
    name: 'without a transaction: within is refused before anything happens',
    skipped,
    async prove(target) {
      const store = await target.open();
      const id = freshId();
      await assert.rejects(store.within({}, claimOf(id), neverRuns), (error) =>
        isTurngateError(error, 'TRANSACTION_REQUIRED'),
      );
      expectKind(await store.probe(claimOf(id)), 'free');
    },
  },
];
