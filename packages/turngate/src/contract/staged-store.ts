/**
 * What a store of staged operations must be able to do: operations made of recorded steps, with a
 * lease, that any process may take over. No waiting, retry or timer inside a store.
 *
 * Laws:
 * - At most one hold (owner, attempt) of an operation is current; every write of a hold is a
 *   compare-and-set on it, and answers `lost` without touching anything once somebody took over.
 * - The attempt number grows by one with every take-over and never shrinks: it is the fence.
 * - A verb repeated by the same hold changes nothing more and gives the same answer, so a lost reply
 *   is settled by asking again.
 * - What `transactStep` did and the record of its step commit together or not at all.
 * - Times are the store's own; callers get and give spans, never instants of another clock.
 */
import type { RecordId } from '../core/record-id.ts';
import type { AlongWith } from './record-store.ts';

/** Where a staged operation stands. */
export type StagedState =
  /** Ready to be run or run again once due: submitted, or failed after effects had begun. */
  | 'waiting'
  /** Held by one attempt until it is due, then anybody's. */
  | 'running'
  /** In a durable sleep; due when it wakes. */
  | 'sleeping'
  /** Failed before anything outside began: the key is free. */
  | 'released'
  /** An external step began and nobody knows whether it happened. */
  | 'indeterminate'
  /** Given up after too many attempts; an operator decides. */
  | 'parked'
  | 'done'
  | 'refused';

/** What is stored about one operation. */
export interface StagedRecord {
  readonly id: RecordId;
  readonly state: StagedState;
  readonly fingerprint: string;
  /** Encoded input (core/codec), so that any process can go on. */
  readonly input: string;
  /** Whose attempt wrote last. */
  readonly owner: string;
  readonly attempt: number;
  /** Failures and crashes since the last one that counts as progress. */
  readonly failures: number;
  /** Somebody was told that it will be finished: a failure never frees the key. */
  readonly promised: boolean;
  /** Encoded result or refusal, once finished. */
  readonly result: string | undefined;
  /** The last failure: name, code and message, no stack. */
  readonly error: string | undefined;
  /** Until somebody else may take it, from the store's now; undefined for finished and parked. */
  readonly dueInMs: number | undefined;
  /** Store clock, epoch milliseconds. */
  readonly startedAtMs: number;
  /** Store clock, epoch milliseconds; undefined until finished or released. */
  readonly expiresAtMs: number | undefined;
  /** Finished and past its retention: the key may run again. */
  readonly expired: boolean;
}

/** What kind of work a step is. */
export type StepKind = 'external' | 'local' | 'tx' | 'sleep' | 'now' | 'uuid';

/** What to do about an external step that began and left no result. */
export type OnUnknown = 'retry' | 'indeterminate';

/** What is stored about one step. */
export interface StagedStep {
  readonly name: string;
  /** Order of recording inside the operation. */
  readonly seq: number;
  readonly kind: StepKind;
  readonly state: 'started' | 'done' | 'refused';
  readonly onUnknown: OnUnknown;
  /** Digest of what the step was given, where the code declares it. */
  readonly fingerprint: string | undefined;
  /** The attempt that wrote it last. */
  readonly attempt: number;
  /** Encoded result or refusal. */
  readonly result: string | undefined;
  /** For a sleep: until it wakes, from the store's now. */
  readonly dueInMs: number | undefined;
  /** Store clock, epoch milliseconds. */
  readonly startedAtMs: number;
}

/** One caller's try at an identity. */
export interface StagedClaim {
  readonly id: RecordId;
  readonly fingerprint: string;
  readonly input: string;
  /** Unique per try; with the attempt the only proof of the hold. */
  readonly owner: string;
  readonly leaseMs: number;
}

/** The right to work on an operation. */
export interface StagedHold {
  readonly id: RecordId;
  readonly owner: string;
  readonly attempt: number;
}

/** The answer to a write of a hold. */
export type HoldAnswer = 'ours' | 'lost';

/** A step as a hold writes it. */
export interface StepWrite {
  readonly name: string;
  readonly seq: number;
  readonly kind: StepKind;
  readonly onUnknown: OnUnknown;
  readonly fingerprint: string | undefined;
}

/** How a step ended. */
export interface StepResult {
  readonly state: 'done' | 'refused';
  readonly result: string;
}

/** How a hold leaves an operation that is not finished. */
export interface Leaving {
  readonly state: 'waiting' | 'sleeping' | 'released' | 'indeterminate' | 'parked';
  /** When it may be taken again; undefined for released and parked. */
  readonly dueInMs: number | undefined;
  readonly error: string | undefined;
  /** Failures and crashes in a row from now on. */
  readonly failures: number;
  /** How long a released record is kept before it is purged. */
  readonly retentionMs: number;
}

/** The answer to `open`. */
export type Opened =
  | { readonly kind: 'claimed'; readonly record: StagedRecord }
  | { readonly kind: 'found'; readonly record: StagedRecord };

/** A take-over: the record as it is now, and the steps recorded so far. */
export interface TakenOver {
  readonly record: StagedRecord;
  readonly steps: readonly StagedStep[];
}

/** Which operations to list. */
export interface StagedFilter {
  readonly operation?: string;
  readonly scope?: string;
  readonly state?: StagedState;
  /** Only those whose order comes after this one (`cursor` of the page before). */
  readonly after?: string;
  /** 1 to 1_000. */
  readonly limit: number;
}

/** What an operator does to an operation; each takes it away from whoever holds it. */
export type StagedVerdict =
  /** Ready at once, failures counted from zero: after a repair or a deploy. */
  | { readonly verb: 'resume' }
  /** Forgets all steps and frees the key. Only when nothing outside happened. */
  | { readonly verb: 'release' }
  /** The unknown step happened, with this encoded result; then resumes. */
  | { readonly verb: 'happened'; readonly step: string; readonly result: string }
  /** The unknown step did not happen; then resumes and runs it. */
  | { readonly verb: 'not-happened'; readonly step: string }
  /** Nobody goes on until an operator resumes it. */
  | { readonly verb: 'park' };

/** The port. `Tx` is what database steps get and what `enqueue` accepts. */
export interface StagedStore<Tx> {
  readonly name: string;
  readonly capabilities: { readonly durable: boolean; readonly shared: boolean };
  /** One cheap read; undefined when there is none. */
  read(id: RecordId): Promise<StagedRecord | undefined>;
  /** Claims a new identity, or says what is there. Never waits for the work of another. */
  open(claim: StagedClaim): Promise<Opened>;
  /** Records the operation as `waiting` and promised, in the caller's transaction. */
  enqueue(tx: Tx, claim: StagedClaim): Promise<Opened>;
  /**
   * Takes an operation whose attempt is still `seenAttempt` and that is due (`when: "due"`) or
   * waiting (`when: "now"`). `fresh` forgets the steps and starts with the claim's payload: for
   * released and expired ones only. Undefined: somebody else was faster.
   */
  takeOver(
    claim: StagedClaim,
    how: { readonly seenAttempt: number; readonly when: 'due' | 'now' | 'fresh' },
  ): Promise<TakenOver | undefined>;
  /** Pushes out the leases that are still ours; one answer per hold, in order. */
  renew(holds: readonly StagedHold[]): Promise<readonly HoldAnswer[]>;
  /** Records that an external step or a sleep begins. */
  startStep(hold: StagedHold, step: StepWrite, sleepMs?: number): Promise<HoldAnswer>;
  /** Records how a step ended, whether or not its start was recorded. */
  finishStep(
    hold: StagedHold,
    step: StepWrite,
    result: StepResult,
    started: boolean,
  ): Promise<HoldAnswer>;
  /** Forgets the start of a step that certainly did not happen. */
  dropStep(hold: StagedHold, name: string): Promise<HoldAnswer>;
  /**
   * Runs `work` in a transaction that also records the step. `repeated`: it had committed before
   * and its answer was lost. `conflict`: rolled back by the database, to be tried again.
   */
  transactStep(
    hold: StagedHold,
    step: StepWrite,
    work: (tx: Tx) => Promise<string>,
  ): Promise<
    | { readonly kind: 'ran' | 'repeated'; readonly result: string }
    | { readonly kind: 'lost' }
    | { readonly kind: 'conflict'; readonly cause: unknown }
  >;
  /** Stores the outcome. */
  end(hold: StagedHold, result: StepResult, retentionMs: number): Promise<HoldAnswer>;
  /** Gives the operation up for now. */
  leave(hold: StagedHold, leaving: Leaving): Promise<HoldAnswer>;
  /** What is due among these operations, oldest first. */
  due(operations: readonly string[], limit: number): Promise<readonly StagedRecord[]>;
  /** For operators: a page in a fixed order; `cursor` is undefined on the last one. */
  list(
    filter: StagedFilter,
  ): Promise<{ readonly records: readonly StagedRecord[]; readonly cursor: string | undefined }>;
  /** For operators: the record and its steps in order. */
  inspect(id: RecordId): Promise<TakenOver | undefined>;
  /**
   * For operators. `refused`: finished, or the named step is not one of unknown outcome. `also` runs
   * in the same transaction, only when the verdict applies.
   */
  decide(
    id: RecordId,
    verdict: StagedVerdict,
    also?: AlongWith,
  ): Promise<'done' | 'missing' | 'refused'>;
  /** Deletes finished operations past their retention in small batches; returns how many went. */
  purge(limit: { readonly batchRows: number; readonly batches: number }): Promise<number>;
}
