/** Does the steps of one attempt: replays what is recorded, records what is done. */
import type {
  StagedStep,
  StagedStore,
  StepKind,
  StepResult,
  StepWrite,
} from '../../contract/staged-store.ts';
import { decodeResult, encodeResult } from '../../core/codec.ts';
import { type Refusal, TurngateError } from '../../core/errors.ts';
import { integerOption } from '../../core/option.ts';
import { providerKeyOf } from '../../core/provider-key.ts';
import { findFrame, inFrame } from '../../runtime/flow-context.ts';
import { type Runtime, uuidFrom } from '../../runtime/runtime.ts';
import { backoffMs, sleep } from '../../runtime/wait.ts';
import { isRefusal } from '../declaration.ts';
import type { LiveHold } from './lease.ts';
import { insisting, persist } from './persist.ts';
import {
  checkStep,
  type StagedPolicy,
  type StepContext,
  type StepOptions,
  type StepPolicy,
  type StepResolution,
  type TxStepOptions,
  type UnknownStep,
} from './staged-declaration.ts';
import { digest, type StepBook, Suspended } from './step-book.ts';

const conflictRange = { baseMs: 10, capMs: 200 };
const conflictsMax = 5;
const sleepMsMax = 366 * 86_400_000;
/** Longer sleeps give the operation back, where somebody recovers it. */
const sleepHereMs = 1_000;

// biome-ignore lint/suspicious/noExplicitAny: a step's function takes a key or a transaction.
type StepRun = (first: any, context: StepContext) => unknown;

/** What the steps of an attempt work with. */
export interface StepParts<Tx> {
  readonly book: StepBook;
  readonly hold: LiveHold;
  readonly policy: StagedPolicy;
  readonly store: StagedStore<Tx>;
  readonly runtime: Runtime;
  readonly signal: AbortSignal;
  readonly resolve: ((step: UnknownStep) => Promise<StepResolution> | StepResolution) | undefined;
  /** Does anybody wake what sleeps long? */
  readonly suspends: boolean;
  readonly onDone: (step: string, durationMs: number) => void;
}

/** The steps as the handler sees them. */
export class StepRunner<Tx> {
  private readonly parts: StepParts<Tx>;
  private readonly loadedMonoMs: number;

  constructor(parts: StepParts<Tx>) {
    this.parts = parts;
    this.loadedMonoMs = parts.runtime.monoMs();
  }

  readonly step = (
    name: string,
    ...rest: [StepRun] | [StepOptions | TxStepOptions, StepRun]
  ): Promise<unknown> => {
    const [options, run] = rest.length === 1 ? [{}, rest[0]] : rest;
    return this.begin(name, async () => {
      const policy = checkStep(name, options, run);
      const old = this.parts.book.recall(name, policy.kind, policy.fingerprint);
      if (old !== undefined && old.state !== 'started') return replay(old);
      const seq = old?.seq ?? (await this.parts.book.mayBegin(name));
      const write: StepWrite = {
        name,
        seq,
        kind: policy.kind,
        onUnknown: policy.onUnknown,
        fingerprint: digest(policy.fingerprint),
      };
      if (policy.kind === 'tx') return await this.transact(write, run);
      if (policy.kind === 'local') return await this.local(write, run);
      return await this.external(write, policy, run, old);
    });
  };

  readonly sleep = (name: string, delayMs: number): Promise<void> =>
    this.begin(name, async () => {
      const { book, hold, store, runtime } = this.parts;
      const waitMs = integerOption(`sleep "${name}"`, delayMs, {
        min: 0,
        max: sleepMsMax,
        fallback: 0,
      });
      const old = book.recall(name, 'sleep', undefined);
      let leftMs = waitMs;
      if (old === undefined) {
        const write = this.plain(name, 'sleep', await book.mayBegin(name));
        await persist(runtime, hold, () => store.startStep(hold, write, waitMs));
      } else leftMs = (old.dueInMs ?? 0) - (runtime.monoMs() - this.loadedMonoMs);
      if (leftMs <= 0) return;
      if (this.parts.suspends && leftMs > sleepHereMs) throw new Suspended(leftMs);
      await sleep(runtime, leftMs, hold.signal);
    });

  readonly now = (name = 'now'): Promise<Date> =>
    this.recorded(name, 'now', () => new Date(this.parts.runtime.wallMs())) as Promise<Date>;

  readonly uuid = (name = 'uuid'): Promise<string> =>
    this.recorded(name, 'uuid', () => uuidFrom(this.parts.runtime)) as Promise<string>;

  readonly providerKey = (step: string): string => providerKeyOf(this.parts.hold.id, step);

  /** A handler that forgets a step's promise must not end the process with its rejection. */
  private begin<T>(name: string, work: () => Promise<T>): Promise<T> {
    const { book } = this.parts;
    const step = book.follow(
      (async () => {
        if (findFrame('turngate.step')?.value === book) {
          throw book.invalid(`step "${name}" was called inside another step`);
        }
        book.enter(name);
        return await work();
      })(),
    );
    step.catch(() => {});
    return step;
  }

  private recorded(name: string, kind: 'now' | 'uuid', make: () => unknown): Promise<unknown> {
    return this.begin(name, async () => {
      const old = this.parts.book.recall(name, kind, undefined);
      if (old !== undefined) return replay(old);
      const write = this.plain(name, kind, await this.parts.book.mayBegin(name));
      return await this.finish(write, 'done', make(), false);
    });
  }

  private async local(write: StepWrite, run: StepRun): Promise<unknown> {
    let value: unknown;
    try {
      value = await this.invoke(write.name, run, this.providerKey(write.name));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return await this.finish(write, 'refused', error.refusal, false);
    }
    return await this.finish(write, 'done', value, false);
  }

  private async external(
    write: StepWrite,
    policy: StepPolicy,
    run: StepRun,
    old: StagedStep | undefined,
  ): Promise<unknown> {
    const { book, hold, store, runtime } = this.parts;
    if (old === undefined) {
      // From here on a lost answer may have been recorded: never forget it by releasing the key.
      book.begins(write.name);
      await persist(runtime, hold, () => store.startStep(hold, write));
    } else if (old.onUnknown === 'indeterminate' || write.onUnknown === 'indeterminate') {
      const found = await this.askResolver(old);
      if (found.happened) return await this.finish(write, 'done', found.result, true);
    }
    await hold.ensure();
    let value: unknown;
    try {
      value = await this.invoke(write.name, run, this.providerKey(write.name));
      this.encode(write.name, value); // What cannot be stored leaves it as unknown as a throw does.
    } catch (error) {
      if (isRefusal(error)) return await this.finish(write, 'refused', error.refusal, true);
      if (!policy.inDoubt(error)) {
        await persist(runtime, hold, () => store.dropStep(hold, write.name));
        book.didNotHappen(write.name);
      } else if (write.onUnknown === 'indeterminate') book.unknownStep = write.name;
      throw error;
    }
    return await this.finish(write, 'done', value, true);
  }

  /** @throws OUTCOME_UNKNOWN when nobody can say */
  private async askResolver(step: StagedStep): Promise<Exclude<StepResolution, 'unknown'>> {
    const { book, hold, policy, resolve } = this.parts;
    const { operation, scope, key } = hold.id;
    const providerKey = this.providerKey(step.name);
    const startedAt = new Date(step.startedAtMs);
    let answer: StepResolution = 'unknown';
    let cause: unknown;
    try {
      answer =
        (await resolve?.({ operation, scope, key, step: step.name, providerKey, startedAt })) ??
        'unknown';
    } catch (error) {
      cause = error;
    }
    if (answer !== 'unknown') return answer;
    book.unknownStep = step.name;
    const message = `${policy.name}: step "${step.name}" began and nobody knows whether it happened`;
    throw new TurngateError('OUTCOME_UNKNOWN', message, { cause });
  }

  private async transact(write: StepWrite, run: StepRun): Promise<unknown> {
    const { book, hold, store, runtime } = this.parts;
    await hold.ensure();
    // The commit's answer can get lost: only a record, or its certain absence, says what happened.
    book.begins(write.name);
    for (let conflicts = 0; ; conflicts++) {
      const handler: { threw: boolean; error?: unknown } = { threw: false };
      const work = async (tx: Tx): Promise<string> => {
        try {
          return this.encode(write.name, await this.invoke(write.name, run, tx));
        } catch (error) {
          Object.assign(handler, { threw: true, error });
          throw error;
        }
      };
      try {
        const answer = await insisting(runtime, hold, () => {
          handler.threw = false;
          return store.transactStep(hold, write, work);
        });
        if (answer.kind === 'lost') throw hold.lose();
        if (answer.kind !== 'conflict') {
          return this.told(write.name, decodeResult(answer.result));
        }
        if (conflicts >= conflictsMax) throw answer.cause;
        await sleep(runtime, backoffMs(runtime, conflicts, conflictRange));
      } catch (error) {
        if (!handler.threw || handler.error !== error) throw error;
        book.didNotHappen(write.name); // Rolled back.
        if (!isRefusal(error)) throw error;
        return await this.finish(write, 'refused', error.refusal, false);
      }
    }
  }

  private async invoke(name: string, run: StepRun, first: unknown): Promise<unknown> {
    const { book, hold, signal } = this.parts;
    const context = { signal, attempt: hold.attempt, providerKey: this.providerKey(name) };
    return await inFrame('turngate.step', book, async () => await run(first, context));
  }

  private async finish(
    write: StepWrite,
    state: StepResult['state'],
    value: unknown,
    started: boolean,
  ): Promise<unknown> {
    const { hold, store, runtime } = this.parts;
    const result = this.encode(write.name, value);
    await persist(runtime, hold, () => store.finishStep(hold, write, { state, result }, started));
    const decoded = decodeResult(result);
    this.told(write.name, decoded);
    if (state === 'refused') throw refusalError(decoded as Refusal);
    return decoded;
  }

  private told<T>(name: string, value: T): T {
    this.parts.onDone(name, this.parts.runtime.monoMs() - this.loadedMonoMs);
    return value;
  }

  private encode(name: string, value: unknown): string {
    const { stepCharsMax } = this.parts.policy;
    const result = encodeResult(value);
    if (result.length <= stepCharsMax) return result;
    const message = `step "${name}": result has ${result.length} characters, stepCharsMax is ${stepCharsMax}`;
    throw new TurngateError('RESULT_INVALID', message, { outcome: 'unknown' });
  }

  private plain(name: string, kind: StepKind, seq: number): StepWrite {
    return { name, seq, kind, onUnknown: 'retry', fingerprint: undefined };
  }
}

function replay(step: StagedStep): unknown {
  const value = decodeResult(step.result as string);
  if (step.state === 'refused') throw refusalError(value as Refusal);
  return value;
}

function refusalError(refusal: Refusal): TurngateError {
  return new TurngateError('REFUSED', refusal.message, { refusal });
}
