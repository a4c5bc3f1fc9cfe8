/** The laws of the store contracts, to be proved on any store with any test runner. */
export { type LockStoreTarget, lockStoreSuite } from './lock-suite.ts';
export { recordStoreSuite } from './record-suite.ts';
export type { RecordStoreTarget } from './record-target.ts';
export type { Runner } from './runner.ts';
