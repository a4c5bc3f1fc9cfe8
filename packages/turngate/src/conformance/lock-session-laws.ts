/** Laws of stores whose grants live in a session or connection. */
import assert from 'node:assert/strict';
import type { LockStore } from '../contract/lock-store.ts';
import { systemRuntime } from '../runtime/runtime.ts';
import { sleep } from '../runtime/wait.ts';
import {
  attemptAt,
  eventually,
  freshName,
  type LockLaw,
  type LockStoreTarget,
  take,
} from './lock-target.ts';

export const lockSessionLaws: readonly LockLaw[] = [
  {
    name: 'a grant whose session ends is told at once, and the next fence is greater',
    skipped: noSession,
    async prove(target) {
      const store = await target.open();
      const held = attemptAt(freshName());
      const fence = await take(store, held);
      const told: string[] = [];
      const end = listenForLoss(store, (owner) => told.push(owner));
      await target.endSession?.(store);
      await eventually('the loss', () => told.includes(held.owner));
      end();
      assert.equal(told.filter((owner) => owner === held.owner).length, 1, 'told once');
      const next = attemptAt(held.name);
      assert.ok((await takeSoon(store, next)) > fence, 'a greater fence');
      const [renewed] = await store.renew([held]);
      assert.notEqual(renewed, 'ours');
      assert.equal(await store.release(held), 'taken');
      assert.equal(await store.release(next), 'ours');
    },
  },
];

function noSession({ endSession }: LockStoreTarget): string | undefined {
  return endSession === undefined ? 'grants live by their leases alone' : undefined;
}

function listenForLoss(store: LockStore, told: (owner: string) => void): () => void {
  if (store.onLoss === undefined) assert.fail('a store of sessions has onLoss()');
  return store.onLoss(({ owner }) => told(owner));
}

/** A new session may take a moment. */
async function takeSoon(store: LockStore, attempt: Parameters<typeof take>[1]): Promise<bigint> {
  const endMonoMs = systemRuntime.monoMs() + 10_000;
  for (;;) {
    const grant = await store.tryAcquire(attempt).catch(() => undefined);
    if (grant?.kind === 'granted') return grant.fence;
    if (systemRuntime.monoMs() > endMonoMs) assert.fail('nobody got in after the session ended');
    await sleep(systemRuntime, 50);
  }
}
