/** The laws of the store contracts, to be proved on any store with any test runner. */
export { type LockLawCase, lockLawNames, lockLawsFor, lockStoreSuite } from './lock-suite.ts';
export type { LockStoreTarget } from './lock-target.ts';
export { recordStoreSuite } from './record-suite.ts';
export type { RecordStoreTarget } from './record-target.ts';
export type { Runner } from './runner.ts';
