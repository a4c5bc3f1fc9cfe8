/**
 * What a store of idempotency records must be able to do for atomic operations.
 *
 * Laws (proved for every store by the conformance suite):
 * - `attempt` runs `work` for at most one caller of an identity at a time, and commits at most one
 *   outcome per identity for as long as the record lives.
 * - The outcome, the effect of `work` through `tx`, and nothing else commit together, or not at all.
 *   When `work` throws, nothing is left and the key is free.
 * - A caller that is not the one gets `found` or `busy`; it never waits holding a connection.
 * - Times are the store's own.
 * - A rejected promise carries a {@link TurngateError} whose `outcome` says what may have happened,
 *   or the error `work` threw. `CommitUnknown` is the one case the caller must settle by `probe`.
 */
import type { RecordId } from '../core/record-id.ts';

/** How an atomic operation ended. A refusal is stored without the effects that led to it. */
export type RecordState = 'done' | 'refused';

/** What is stored about one identity. */
export interface StoredRecord {
  readonly state: RecordState;
  readonly fingerprint: string;
  /** The attempt that wrote it: the only proof that it is "mine". */
  readonly owner: string;
  /** Encoded result or refusal (see core/codec). */
  readonly result: string;
  /** Store clock, epoch milliseconds. */
  readonly firstProcessedAtMs: number;
  /** Store clock, epoch milliseconds. After this the key may run again. */
  readonly expiresAtMs: number;
}

/** One caller's try at an identity. */
export interface Claim {
  readonly id: RecordId;
  readonly fingerprint: string;
  /** Unique per attempt; written into the record. */
  readonly owner: string;
  /** How long a finished record answers repeats. */
  readonly retentionMs: number;
}

/** What `work` hands back to be stored with its effect. */
export interface WorkResult {
  readonly state: RecordState;
  readonly result: string;
}

/** The database work of one attempt. */
export type Work<Tx> = (tx: Tx) => Promise<WorkResult>;

/** How an attempt ended. */
export type Attempt =
  | { readonly kind: 'ran'; readonly record: StoredRecord }
  | { readonly kind: 'found'; readonly record: StoredRecord }
  /**
   * Another caller's work is uncommitted. `sameFingerprint` is undefined where the store cannot
   * see the payload of running work.
   */
  | { readonly kind: 'busy'; readonly sameFingerprint: boolean | undefined }
  /** The database rolled the transaction back for its own reasons; the whole may be tried again. */
  | { readonly kind: 'conflict'; readonly cause: unknown };

/** What a store promises; shown in the generated capability table. */
export interface RecordCapabilities {
  /** Does the record commit in one transaction with the business write? */
  readonly atomicWithEffect: boolean;
  /** Do committed records survive a crash of the store? */
  readonly durable: boolean;
  /** Can several processes share it? */
  readonly shared: boolean;
}

/** The port. `Tx` is what handlers get and what `within` accepts. */
export interface RecordStore<Tx> {
  readonly name: string;
  readonly capabilities: RecordCapabilities;
  /** One cheap read outside any transaction; undefined when absent or expired. */
  read(id: RecordId): Promise<StoredRecord | undefined>;
  /** One transaction of our own around claim, work, outcome and commit. */
  attempt(claim: Claim, work: Work<Tx>): Promise<Attempt>;
  /** The same inside the caller's open transaction; an error undoes only what `work` did. */
  within(tx: Tx, claim: Claim, work: Work<Tx>): Promise<Attempt>;
  /** Is the identity recorded, running, or free? Answers only when no older attempt can commit. */
  probe(claim: Claim): Promise<Exclude<Attempt, { kind: 'ran' }> | { readonly kind: 'free' }>;
  /** Deletes expired records in small batches; returns how many went. */
  purge(limit: { readonly batchRows: number; readonly batches: number }): Promise<number>;
}

const brand = Symbol.for('turngate.commit-unknown');

/** The connection died between sending COMMIT and its answer. Settle by `probe`, never by running. */
export class CommitUnknown extends Error {
  override readonly name: string = 'CommitUnknown';

  constructor(cause: unknown) {
    super('the connection was lost while committing', { cause });
    Object.defineProperty(this, brand, { value: true });
  }
}

/** Recognises {@link CommitUnknown} from any copy of the package. */
export function isCommitUnknown(error: unknown): error is CommitUnknown {
  return typeof error === 'object' && error !== null && brand in error;
}
