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
import type { SqlSession } from './sql-session.ts';

/** How an atomic operation ended. A refusal is stored without the effects that led to it. */
export type RecordState = 'done' | 'refused';

/** What is stored about one identity. */
export interface StoredRecord {
  readonly state: RecordState;
  readonly fingerprint: string;
  /** The attempt that wrote it: the only proof that it is "mine". */
  readonly owner: string;
  /** Encoded result or refusal (see core/codec); '' of a done record: dropped before its expiry. */
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

/** One declared statement, with its values as text. */
export interface SingleWrite {
  /** An INSERT, UPDATE or DELETE; `$1`, `$2`, … are texts, to be cast in it where that matters. */
  readonly statement: string;
  readonly values: readonly (string | null)[];
}

/** How a single write ended. `nothing`: the statement touched no row, and nothing is recorded. */
export type SingleWriteAttempt = Exclude<Attempt, { kind: 'busy' }> | { readonly kind: 'nothing' };

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
  /**
   * Claim, one statement and what it returns as the result in one trip and one commit. The result is
   * the encoded list of returned rows; a store without RETURNING stores `[{ affectedRows: 1 }]` and
   * takes a write of any other number of rows for `nothing`. Repeating it with the
   * same owner gives the same answer, so a lost answer is settled by asking again. Absent where the
   * store cannot.
   */
  singleWrite?(claim: Claim, write: SingleWrite): Promise<SingleWriteAttempt>;
  /** Deletes expired records in small batches; returns how many went. */
  purge(limit: { readonly batchRows: number; readonly batches: number }): Promise<number>;
  /** For operators and clean-up jobs. Absent where the store cannot. */
  readonly admin?: RecordAdmin;
}

/**
 * Runs inside the transaction of an operator's act, just before its commit, and only when the act
 * applies. Throwing undoes the act. Undefined: the store has no SQL transaction.
 */
export type AlongWith = (session: SqlSession | undefined) => Promise<void>;

/** Which records to list. Times are when they were first processed, by the store's clock. */
export interface RecordFilter {
  readonly operation?: string;
  readonly scope?: string;
  readonly key?: string;
  readonly state?: RecordState;
  /** At or after. Epoch milliseconds. */
  readonly sinceMs?: number;
  /** Before. Epoch milliseconds. */
  readonly beforeMs?: number;
  /** Only those whose order comes after this one (`cursor` of the page before). */
  readonly after?: string;
  /** 1 to 1_000. */
  readonly limit: number;
}

/** A record as operators see it: everything but the result. */
export interface ListedRecord extends Omit<StoredRecord, 'result'> {
  readonly id: RecordId;
  /** UTF-8 bytes of the encoded result; 0: dropped before its expiry. */
  readonly resultBytes: number;
  /** Past its expiry and not purged yet: the key may run again. */
  readonly expired: boolean;
}

/** A page of records; `cursor` is undefined on the last one. */
export interface RecordPage {
  readonly records: readonly ListedRecord[];
  readonly cursor: string | undefined;
}

/** Which results to drop, and where to go on. */
export interface DropResults {
  readonly operation: string;
  /** Results of records first processed at least so long ago. Milliseconds by the store's clock. */
  readonly olderThanMs: number;
  /** Records looked at in one transaction: 1 to 10_000. */
  readonly batchRows: number;
  /** `cursor` of the batch before. */
  readonly after?: string;
}

/** The operators' part of the port. Neither verb touches work that is running. */
export interface RecordAdmin {
  /** A page in a fixed order, finished records only, expired ones included. */
  list(filter: RecordFilter): Promise<RecordPage>;
  /** Deletes a finished record, so that its key may run again. False: there is none. */
  remove(id: RecordId, also?: AlongWith): Promise<boolean>;
  /**
   * One batch: empties the results of done records and keeps key, fingerprint and times, so that a
   * repeat is still recognised and never runs. Refusals are kept: they are the answer.
   */
  dropResults(
    batch: DropResults,
  ): Promise<{ readonly dropped: number; readonly cursor: string | undefined }>;
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
