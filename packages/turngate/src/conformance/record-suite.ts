/** The laws of a record store as tests of any runner. */
import { recordAdminLaws } from './record-admin-laws.ts';
import { recordLaws } from './record-laws.ts';
import { recordLooseLaws } from './record-loose-laws.ts';
import type { AnyRecordTarget, RecordStoreTarget } from './record-target.ts';
import { recordWithinLaws } from './record-within-laws.ts';
import { type Runner, registerLaws } from './runner.ts';

/**
 * Registers the laws of {@link RecordStore} for one store.
 *
 * @param runner `{ describe, it }` of your test runner
 */
export function recordStoreSuite<Tx>(runner: Runner, target: RecordStoreTarget<Tx>): void {
  // Without a transaction there is none to be in; the reason is shown with each of them.
  const withinLaws = recordWithinLaws.map((law) => ({
    ...law,
    skipped: (any: AnyRecordTarget) => any.notAtomic ?? law.skipped?.(any),
  }));
  const laws = [...recordLaws, ...recordLooseLaws, ...withinLaws, ...recordAdminLaws];
  const any = target as unknown as AnyRecordTarget;
  registerLaws(runner, `record laws on ${target.name}`, laws, any);
}
