/** The laws of a record store as tests of any runner. */
import { recordLaws } from './record-laws.ts';
import type { AnyRecordTarget, RecordStoreTarget } from './record-target.ts';
import { recordWithinLaws } from './record-within-laws.ts';
import { type Runner, registerLaws } from './runner.ts';

/**
 * Registers the laws of {@link RecordStore} for one store.
 *
 * @param runner `{ describe, it }` of your test runner
 */
export function recordStoreSuite<Tx>(runner: Runner, target: RecordStoreTarget<Tx>): void {
  const laws = [...recordLaws, ...recordWithinLaws];
  const any = target as unknown as AnyRecordTarget;
  registerLaws(runner, `record laws on ${target.name}`, laws, any);
}
