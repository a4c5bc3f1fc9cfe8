/** The laws of a lock store as tests of any runner. */
import assert from 'node:assert/strict';
import type { LockStore } from '../contract/lock-store.ts';
import { lockMutexLaws } from './lock-mutex-laws.ts';
import { lockQueueLaws } from './lock-queue-laws.ts';
import { lockSessionLaws } from './lock-session-laws.ts';
import { lockShareLaws } from './lock-share-laws.ts';
import type { LockLaw, LockStoreTarget } from './lock-target.ts';
import { type Runner, registerLaws } from './runner.ts';

const declaration: LockLaw = {
  name: 'the store is what this report says it is',
  async prove(target) {
    const store = await target.open();
    const { capabilities } = store;
    const assumed = { wakeup: 'push', fairness: 'fifo', shares: true, fenceBlocks: true };
    assert.deepEqual(capabilities, { ...capabilities, ...assumed, ...target.capabilities });
    assert.equal(store.watch !== undefined, capabilities.wakeup === 'push', 'watch()');
    assert.equal(store.onLoss !== undefined, target.endSession !== undefined, 'onLoss()');
    for (const verb of ['pass', 'forceRelease'] as const) {
      assert.equal(store[verb] === undefined, target.lacks?.includes(verb) ?? false, verb);
    }
  },
};

const laws: readonly LockLaw[] = [
  declaration,
  ...lockMutexLaws,
  ...lockQueueLaws,
  ...lockShareLaws,
  ...lockSessionLaws,
];

/** The names of all laws, for a table of laws and stores. */
export const lockLawNames: readonly string[] = laws.map(({ name }) => name);

/** What one law is for one store. */
export interface LockLawCase {
  readonly law: string;
  /** Why it does not apply to the store; undefined when the suite proves it. */
  readonly notApplicable: string | undefined;
}

/**
 * Which laws {@link lockStoreSuite} proves on a store, and why not the others. The suite compares what
 * is derived here with the store itself: capabilities, verbs and `onLoss`.
 */
export function lockLawsFor(store: LockStore): readonly LockLawCase[] {
  const target: LockStoreTarget = {
    name: store.name,
    capabilities: store.capabilities,
    lacks: (['pass', 'forceRelease'] as const).filter((verb) => store[verb] === undefined),
    ...(store.onLoss && { endSession: async () => {} }),
    open: async () => store,
    passTime: async () => {},
  };
  return laws.map(({ name, skipped }) => ({ law: name, notApplicable: skipped?.(target) }));
}

/**
 * Registers the laws of {@link LockStore} for one store.
 *
 * @param runner `{ describe, it }` of your test runner
 */
export function lockStoreSuite(runner: Runner, target: LockStoreTarget): void {
  const excused = laws.map((law) => {
    const reason = target.notApplicable?.[law.name];
    return reason === undefined ? law : { ...law, skipped: () => reason };
  });
  for (const name of Object.keys(target.notApplicable ?? {})) {
    assert.ok(lockLawNames.includes(name), `notApplicable: no lock law is called "${name}"`);
  }
  registerLaws(runner, `lock laws on ${target.name}`, excused, target);
}
