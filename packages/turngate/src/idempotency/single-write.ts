/** Operations that are one statement: claim, write and result in one trip and one commit. */
import {
  type Claim,
  isCommitUnknown,
  type RecordStore,
  type SingleWrite,
  type SingleWriteAttempt,
  type StoredRecord,
} from '../contract/record-store.ts';
import { TurngateError } from '../core/errors.ts';
import { functionOption, optionError } from '../core/option.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { backoffMs, sleep } from '../runtime/wait.ts';
import type { Finished } from './attempt-loop.ts';
import {
  checkDeclaration,
  type OperationDeclaration,
  type OperationPolicy,
  type Request,
  requestOf,
} from './declaration.ts';
import { type CallOptions, Flights } from './flights.ts';
import type { Outcome } from './outcome.ts';
import type { OutcomeMemory } from './outcome-memory.ts';
import { RepeatShare } from './repeat-share.ts';

/** A value to be bound. It travels as text: cast it in the statement, like `$2::bigint`. */
export type WriteValue = string | number | bigint | boolean | null;

/** A row the statement returned, as JSON has it: select big numbers as text. */
export type WrittenRow = Readonly<Record<string, unknown>>;

/** An operation that is one statement, declared once. */
export interface SingleWriteDeclaration<Input, Value>
  extends Omit<OperationDeclaration<unknown, Input, Value>, 'run' | 'resultCharsMax'> {
  /**
   * One INSERT, UPDATE or DELETE, with RETURNING where the database has it. Its guard decides: a
   * statement that finds no row is answered NOTHING_WRITTEN, and nothing is recorded. `$1`, `$2`, … are
   * texts: cast them, for example `WHERE order_no = $1 AND version = $2::bigint`. The text is part of
   * the program: never put input into it.
   *
   * On MySQL and MariaDB it must touch exactly one row, and `rows` is `[{ affectedRows: 1 }]`.
   */
  readonly statement: string;
  /** The values of an input, in order. */
  readonly values: (input: Input) => readonly WriteValue[];
  /**
   * Turns the returned rows into the answer, for the first and for every repeat alike: no side effects.
   *
   * @default the first row
   */
  readonly answer?: (rows: readonly WrittenRow[], input: Input) => Value;
}

/** A declared single write. */
export interface SingleWriteOperation<Input, Value> {
  /**
   * Writes once per key; every repeat gets what the first wrote.
   *
   * @throws NOTHING_WRITTEN when the guard in the statement found nothing to write
   */
  (input: Input, options?: CallOptions): Promise<Outcome<Value>>;
  readonly policy: OperationPolicy;
}

type SomeStore = Pick<RecordStore<never>, 'name' | 'read' | 'singleWrite'>;
type WritingStore = Required<SomeStore>;

/** What the gate lends. */
export interface SingleWriteParts {
  readonly store: SomeStore;
  readonly runtime: Runtime;
  readonly nextOwner: () => string;
  readonly memory: OutcomeMemory | undefined;
  readonly closing: AbortSignal;
}

const conflictRange = { baseMs: 10, capMs: 200 };
const conflictsMax = 5;
const settleMs = 10_000;

/** Runs the calls of one declared write. */
export class SingleWriteRunner<Input, Value> {
  readonly policy: OperationPolicy;
  private readonly declaration: SingleWriteDeclaration<Input, Value>;
  /** What its requests are made by. */
  private readonly asOperation: OperationDeclaration<unknown, Input, undefined>;
  private readonly parts: SingleWriteParts;
  private readonly store: WritingStore;
  private readonly flights: Flights<Input, readonly WrittenRow[]>;
  private readonly repeatShare = new RepeatShare();

  /** @throws OPTION_INVALID */
  constructor(declaration: SingleWriteDeclaration<Input, Value>, parts: SingleWriteParts) {
    const { statement, values, answer, ...plain } = declaration;
    this.policy = checkDeclaration({ ...plain, run: () => undefined });
    functionOption('values', values);
    if (answer !== undefined) functionOption('answer', answer);
    if (typeof statement !== 'string' || !/^\s*(insert|update|delete)\b/i.test(statement)) {
      throw optionError('statement', 'one INSERT, UPDATE or DELETE', statement);
    }
    if (!canWrite(parts.store)) {
      throw optionError(
        'records',
        'a store with single writes, like postgres(pool)',
        parts.store.name,
      );
    }
    this.store = parts.store;
    this.declaration = declaration;
    this.asOperation = { ...plain, run: () => undefined };
    this.parts = parts;
    const { runtime, closing, memory } = parts;
    const bring = (request: Request, input: Input): Promise<Finished> => this.write(request, input);
    this.flights = new Flights({ policy: this.policy, runtime, closing, memory, bring });
  }

  get inFlight(): number {
    return this.flights.inFlight;
  }

  /** Resolves when nothing is in flight any more. */
  idle(): Promise<void> {
    return this.flights.idle();
  }

  async call(input: Input, options: CallOptions = {}): Promise<Outcome<Value>> {
    const request = requestOf(this.asOperation, input);
    const { value, replayed, firstProcessedAt } = await this.flights.call(request, input, options);
    const { answer = (rows: readonly WrittenRow[]) => rows[0] as Value } = this.declaration;
    return { value: answer(value, input), replayed, firstProcessedAt };
  }

  private async write(request: Request, input: Input): Promise<Finished> {
    const { runtime, nextOwner } = this.parts;
    const { id, fingerprint } = request;
    const { statement, values } = this.declaration;
    const claim: Claim = {
      id,
      fingerprint,
      owner: nextOwner(),
      retentionMs: this.policy.retentionMs,
    };
    const write = { statement, values: values(input).map(boundText) };
    const startMonoMs = runtime.monoMs();
    if (this.repeatShare.readFirst()) {
      const record = await this.store.read(id);
      if (record !== undefined) return this.found(record);
    }
    for (let conflicts = 0; ; conflicts++) {
      const attempt = await this.send(claim, write, startMonoMs);
      if (attempt.kind === 'found') return this.found(attempt.record);
      if (attempt.kind === 'ran') {
        this.repeatShare.note(false);
        return { record: attempt.record, ran: true };
      }
      if (attempt.kind === 'nothing') {
        throw new TurngateError(
          'NOTHING_WRITTEN',
          `${this.policy.name}: no row was there to write`,
        );
      }
      if (conflicts >= conflictsMax) {
        const message = `${this.policy.name}: rolled back by the database again and again`;
        throw new TurngateError('TRANSACTION_CONFLICT', message, { cause: attempt.cause });
      }
      await sleep(runtime, backoffMs(runtime, conflicts, conflictRange));
    }
  }

  private found(record: StoredRecord): Finished {
    this.repeatShare.note(true);
    return { record, ran: false };
  }

  /** A lost answer is settled by asking again: the same owner gets what it wrote, if it did. */
  private send(
    claim: Claim,
    write: SingleWrite,
    startMonoMs: number,
    tries = 0,
  ): Promise<SingleWriteAttempt> {
    return this.store.singleWrite(claim, write).catch(async (error: unknown) => {
      const { runtime } = this.parts;
      if (!isCommitUnknown(error)) throw error;
      if (runtime.monoMs() - startMonoMs > settleMs) {
        const message = `${this.policy.name}: the database did not come back to say what happened`;
        throw new TurngateError('OUTCOME_UNKNOWN', message, { cause: error });
      }
      await sleep(runtime, backoffMs(runtime, tries, { baseMs: 50, capMs: 1_000 }));
      return await this.send(claim, write, startMonoMs, tries + 1);
    });
  }
}

function canWrite(store: SomeStore): store is WritingStore {
  return typeof store.singleWrite === 'function';
}

/** As text; `undefined` or an object would be bound as the words "undefined" and "[object Object]". */
function boundText(value: WriteValue, i: number): string | null {
  if (value === null) return null;
  if (typeof value === 'undefined' || typeof value === 'object' || typeof value === 'function') {
    throw optionError(`values[${i}]`, 'text, a number, a bigint, a boolean or null', value);
  }
  return String(value);
}
