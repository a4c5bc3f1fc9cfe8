/** The ports a store implements. */
export type {
  LockAnswer,
  LockAttempt,
  LockCapabilities,
  LockGrant,
  LockState,
  LockStore,
} from './lock-store.ts';
export {
  type Attempt,
  type Claim,
  CommitUnknown,
  isCommitUnknown,
  type RecordCapabilities,
  type RecordState,
  type RecordStore,
  type StoredRecord,
  type Work,
  type WorkResult,
} from './record-store.ts';
export type { SqlResult, SqlSession, SqlValue } from './sql-session.ts';
