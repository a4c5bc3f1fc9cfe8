/** Laws of a record store's part for operators and clean-up jobs. */
import assert from 'node:assert/strict';
import type { ListedRecord, RecordAdmin, RecordStore } from '../contract/record-store.ts';
import { systemRuntime } from '../runtime/runtime.ts';
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

async function openAdmin(
  target: AnyRecordTarget,
): Promise<{ store: RecordStore<unknown>; admin: RecordAdmin }> {
  const store = await target.open();
  assert.ok(store.admin, 'the store has no admin port: say so with target.noAdmin');
  return { store, admin: store.admin };
}

/** Every page of a filter. */
async function listAll(
  admin: RecordAdmin,
  filter: Omit<Parameters<RecordAdmin['list']>[0], 'after'>,
): Promise<ListedRecord[]> {
  const all: ListedRecord[] = [];
  let after: string | undefined;
  do {
    const page = await admin.list({ ...filter, ...(after !== undefined && { after }) });
    assert.ok(page.records.length <= filter.limit);
    all.push(...page.records);
    after = page.cursor;
  } while (after !== undefined);
  return all;
}

const skipped = ({ noAdmin }: AnyRecordTarget): string | undefined => noAdmin;

/** What holds for `store.admin`. */
export const recordAdminLaws: readonly Law<AnyRecordTarget>[] = [
  {
    name: 'pages hold every record of a filter once, whatever their size, and none of another',
    skipped,
    async prove(target) {
      const { store, admin } = await openAdmin(target);
      const scope = systemRuntime.randomId();
      const ids = ['a', 'B', 'ä', "'", '%', 'k', 'K', '1'].map((key) => freshId({ scope, key }));
      for (const id of ids)
        expectKind(await store.attempt(claimOf(id), writing(target, scope)), 'ran');
      const other = freshId({ scope: `${scope}x` });
      expectKind(await store.attempt(claimOf(other), writing(target, scope)), 'ran');
      const refused = freshId({ scope, key: 'refused' });
      await store.attempt(claimOf(refused), async () => ({ state: 'refused', result: '1{}' }));
      const keysOf = (records: readonly ListedRecord[]): string[] =>
        records.map(({ id }) => id.key).sort();
      const wanted = ids.map(({ key }) => key).sort();
      for (const limit of [1, 3, 9, 100]) {
        const filter = { operation: 'law.test', scope, state: 'done', limit } as const;
        assert.deepEqual(keysOf(await listAll(admin, filter)), wanted);
      }
      assert.deepEqual(keysOf(await listAll(admin, { scope, state: 'refused', limit: 2 })), [
        'refused',
      ]);
      const [one, ...none] = await listAll(admin, {
        ...(ids[2] as (typeof ids)[number]),
        limit: 2,
      });
      assert.deepEqual(none, []);
      const { result, ...stored } = (await store.read(ids[2] as (typeof ids)[number])) as never as {
        result: string;
      };
      const facts = {
        ...stored,
        id: ids[2],
        resultBytes: Buffer.byteLength(result),
        expired: false,
      };
      assert.deepEqual(one, facts);
    },
  },
  {
    name: 'time filters take what was first processed at or after one time and before another',
    skipped,
    async prove(target) {
      const { store, admin } = await openAdmin(target);
      const scope = systemRuntime.randomId();
      const id = freshId({ scope });
      const { record } = expectKind(
        await store.attempt(claimOf(id), writing(target, scope)),
        'ran',
      );
      const at = record.firstProcessedAtMs;
      const found = async (range: object): Promise<number> =>
        (await admin.list({ scope, limit: 5, ...range })).records.length;
      assert.equal(await found({ sinceMs: at }), 1);
      assert.equal(await found({ sinceMs: at + 1 }), 0);
      assert.equal(await found({ beforeMs: at + 1 }), 1);
      assert.equal(await found({ beforeMs: at }), 0);
    },
  },
  {
    name: 'a removed record is gone and its key runs again; what is not there is not removed',
    skipped,
    async prove(target) {
      const { store, admin } = await openAdmin(target);
      const id = freshId();
      assert.equal(await admin.remove(id), false);
      expectKind(await store.attempt(claimOf(id), writing(target, id.key)), 'ran');
      assert.equal(await admin.remove({ ...id, scope: 'other' }), false);
      assert.equal(await admin.remove(id), true);
      assert.equal(await store.read(id), undefined);
      assert.equal(await admin.remove(id), false);
      expectKind(await store.attempt(claimOf(id), writing(target, id.key)), 'ran');
      assert.equal((await target.written(id.key)).length, 2);
    },
  },
  {
    name: 'work that is running is neither listed nor removed',
    skipped: ({ noAdmin, oneSession }) => noAdmin ?? oneSession,
    async prove(target) {
      const { store, admin } = await openAdmin(target);
      const id = freshId();
      const running = await startRunning(target, store, claimOf(id));
      assert.equal(await admin.remove(id), false);
      assert.deepEqual((await admin.list({ ...id, limit: 1 })).records, []);
      expectKind(await running.finish(), 'ran');
      expectKind(await store.attempt(claimOf(id), neverRuns), 'found');
    },
  },
  {
    name: 'what comes along with a removal runs only when there is one, and its failure undoes it',
    skipped,
    async prove(target) {
      const { store, admin } = await openAdmin(target);
      const id = freshId();
      let ran = 0;
      assert.equal(await admin.remove(id, async () => void ran++), false);
      assert.equal(ran, 0);
      expectKind(await store.attempt(claimOf(id), writing(target, id.key)), 'ran');
      const failing = admin.remove(id, async () => {
        throw new Error('no audit line, no act');
      });
      await assert.rejects(failing);
      expectKind(await store.attempt(claimOf(id), neverRuns), 'found');
      assert.equal(await admin.remove(id, async () => void ran++), true);
      assert.equal(ran, 1);
    },
  },
  {
    name: 'a dropped result leaves key, fingerprint and times: a repeat is found and never runs',
    skipped,
    async prove(target) {
      const { store, admin } = await openAdmin(target);
      const operation = `law.${Math.floor(systemRuntime.random() * 1e9)}`;
      const ids = [1, 2, 3, 4, 5].map(() => freshId({ operation }));
      const refused = freshId({ operation });
      const other = freshId();
      const results: string[] = [];
      for (const id of [...ids, other]) {
        await store.attempt(claimOf(id), writing(target, id.key, '1"body"'));
      }
      await store.attempt(claimOf(refused), async () => ({
        state: 'refused',
        result: '1{"no":1}',
      }));
      const before = await store.read(ids[0] as (typeof ids)[number]);
      const drop = async (olderThanMs: number): Promise<number> => {
        let dropped = 0;
        let after: string | undefined;
        do {
          const batch = { operation, olderThanMs, batchRows: 2 };
          const answer = await admin.dropResults({
            ...batch,
            ...(after !== undefined && { after }),
          });
          assert.ok(answer.dropped <= 2);
          dropped += answer.dropped;
          after = answer.cursor;
        } while (after !== undefined);
        return dropped;
      };
      assert.equal(await drop(3_600_000), 0); // Too young.
      await target.passTime(5);
      assert.equal(await drop(1), 5);
      assert.equal(await drop(1), 0);
      for (const id of ids) {
        const { record } = expectKind(await store.attempt(claimOf(id), neverRuns), 'found');
        results.push(record.result);
      }
      assert.deepEqual(new Set(results), new Set(['']));
      const after = await store.read(ids[0] as (typeof ids)[number]);
      assert.deepEqual(after, { ...before, result: '' });
      assert.equal((await store.read(refused))?.result, '1{"no":1}');
      assert.equal((await store.read(other))?.result, '1"body"');
    },
  },
];
