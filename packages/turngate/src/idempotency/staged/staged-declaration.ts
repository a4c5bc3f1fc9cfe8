/** How a staged operation is declared: effects outside the database, made of recorded steps. */
import type { OnUnknown } from '../../contract/staged-store.ts';
import { functionOption, integerOption, knownOptions } from '../../core/option.ts';
import {
  checkDeclaration,
  type OperationDeclaration,
  type OperationPolicy,
} from '../declaration.ts';

/** What a step's function gets besides its provider key or transaction. */
export interface StepContext {
  /** Aborts when another process has taken the operation over, or the gate closes. */
  readonly signal: AbortSignal;
  /** Grows with every take-over of the operation: usable as a fence. */
  readonly attempt: number;
  /** The same over all attempts, another for every other step. */
  readonly providerKey: string;
}

/** Options of one step. */
export interface StepOptions {
  /**
   * Has the step an effect outside? Then its start is recorded before it runs. `false` is for work
   * whose repetition harms nobody: only its result is recorded.
   *
   * @default true
   */
  readonly external?: boolean;
  /**
   * What to do when the step began and left no result (it threw, or the process died).
   *
   * `retry`: run it again with the same provider key. Right when the provider drops repeats of a key.
   * `indeterminate`: never run it again by ourselves; the operation's `resolve`, or an operator, says
   * what happened.
   *
   * @default `retry` when the function declares its first parameter, the provider key;
   *   `indeterminate` when it does not
   */
  readonly onUnknown?: OnUnknown;
  /**
   * Does this error leave open whether the effect happened? Return false for errors that certainly
   * came before it, like a refused connection. Default: every error leaves it open.
   */
  readonly inDoubt?: (error: unknown) => boolean;
  /**
   * What the step was given. When a later attempt comes with something else, STEP_DIVERGED is thrown
   * instead of a result that belongs to another question. Default: not compared.
   */
  readonly fingerprint?: unknown;
}

/** Options of a step whose effect is a database transaction. */
export interface TxStepOptions {
  readonly tx: true;
  readonly fingerprint?: unknown;
}

/** Runs a step, or gives what was recorded for it by an earlier attempt. */
export interface StepFunction<Tx> {
  /**
   * A step with an effect outside. Send `providerKey` to the provider as its idempotency key.
   *
   * @param name unique in the operation, 1 to 100 characters; in a loop, put the item's id into it
   * @throws LEASE_LOST, STEP_INVALID, STEP_DIVERGED, OUTCOME_UNKNOWN, RESULT_INVALID, and what the
   *   function throws. After any of these except a `refuse(…)` the attempt is over: further steps
   *   throw the same error.
   */
  <T>(name: string, run: (providerKey: string, context: StepContext) => Promise<T> | T): Promise<T>;
  /** A step whose effect commits together with its record: it happens once. */
  <T>(
    name: string,
    options: TxStepOptions,
    run: (tx: Tx, context: StepContext) => Promise<T> | T,
  ): Promise<T>;
  <T>(
    name: string,
    options: StepOptions,
    run: (providerKey: string, context: StepContext) => Promise<T> | T,
  ): Promise<T>;
}

/** What the handler gets besides the input. All functions may be taken apart from it. */
export interface StagedContext<Tx> {
  readonly step: StepFunction<Tx>;
  /**
   * Sleeps over restarts. Short sleeps wait in this process; when the gate recovers, longer ones give
   * the operation back and whoever recovers goes on. Wakes late by up to `everyMs` of `recover`.
   *
   * @param delayMs milliseconds, integer, 0 to 366 days
   */
  readonly sleep: (name: string, delayMs: number) => Promise<void>;
  /** The time when this was first asked, the same over all attempts. */
  readonly now: (name?: string) => Promise<Date>;
  /** A random UUID, the same over all attempts. */
  readonly uuid: (name?: string) => Promise<string>;
  /** The key that a step's provider gets; for looking up what another step did. */
  readonly providerKey: (step: string) => string;
  /** Aborts when another process has taken the operation over, or the gate closes. */
  readonly signal: AbortSignal;
  /** 1 for the first; grows with every take-over. */
  readonly attempt: number;
  readonly scope: string;
  readonly key: string;
}

/** A step that began and left no result. */
export interface UnknownStep {
  readonly operation: string;
  readonly scope: string;
  readonly key: string;
  readonly step: string;
  /** What the provider got, if the step sent it. */
  readonly providerKey: string;
  /** When the step began (store clock). */
  readonly startedAt: Date;
}

/** What a resolver found out. */
export type StepResolution =
  | { readonly happened: true; readonly result: unknown }
  | { readonly happened: false }
  /** Nobody knows yet; asked again later. */
  | 'unknown';

/** A business action with effects outside the database, declared once. */
export interface StagedDeclaration<Tx, Input, Value>
  extends Omit<OperationDeclaration<Tx, Input, Value>, 'run' | 'retentionMs' | 'resultCharsMax'> {
  /**
   * How long a finished operation answers repeats, from its end. Longer than the longest retry or
   * redelivery, and not longer than the providers remember their keys if the key may come back.
   *
   * @unit milliseconds, integer, 1_000 to 3_650 days
   * @default 2_592_000_000 (30 days)
   */
  readonly retentionMs?: number;
  /**
   * Largest encoded result that is stored. A bigger one fails the attempt; what the steps did stays.
   *
   * @unit characters, integer, 1_000 to 16_777_216
   * @default 262_144
   */
  readonly resultCharsMax?: number;
  /**
   * How long an attempt that shows no sign of life keeps others out. It is renewed while the handler
   * runs, whatever the handler takes; after a crash it is the time until somebody goes on.
   *
   * @unit milliseconds, integer, 500 to 3_600_000
   * @default 30_000
   */
  readonly leaseMs?: number;
  /**
   * After how many failures and crashes in a row, with no step done in between, the operation is parked
   * for an operator. An attempt that a caller makes before the next one is due is not counted:
   * impatience parks nothing.
   *
   * @unit attempts, integer, 1 to 1_000
   * @default 10
   */
  readonly attemptsMax?: number;
  /**
   * @unit steps of one operation, integer, 1 to 10_000
   * @default 200
   */
  readonly stepsMax?: number;
  /**
   * Largest encoded result of one step. Keep big data elsewhere and return where.
   *
   * @unit characters, integer, 1_000 to 16_777_216
   * @default 262_144
   */
  readonly stepCharsMax?: number;
  /**
   * Asked about a step of unknown outcome whose policy is `indeterminate`: look it up at the provider.
   * It may be asked again, so it must only read.
   */
  readonly resolve?: (step: UnknownStep) => Promise<StepResolution> | StepResolution;
  /**
   * Does the work out of steps. It runs again from the top in every attempt, and recorded steps give
   * their results: between steps use nothing that changes, no clock, chance, network or database.
   * The input comes as it was stored, after a codec round trip.
   */
  readonly run: (input: Input, context: StagedContext<Tx>) => Promise<Value> | Value;
}

/** A declaration after checking. */
export interface StagedPolicy extends OperationPolicy {
  readonly leaseMs: number;
  readonly attemptsMax: number;
  readonly stepsMax: number;
  readonly stepCharsMax: number;
  readonly resolves: boolean;
}

/** @throws OPTION_INVALID */
export function checkStaged<Tx, Input, Value>(
  declaration: StagedDeclaration<Tx, Input, Value>,
): StagedPolicy {
  const { leaseMs, attemptsMax, stepsMax, stepCharsMax, resolve, run, ...plain } = declaration;
  functionOption('run', run);
  if (resolve !== undefined) functionOption('resolve', resolve);
  const range = { min: 1_000, max: 16_777_216, fallback: 262_144 };
  return {
    ...checkDeclaration({ ...plain, run: () => undefined }),
    leaseMs: integerOption('leaseMs', leaseMs, { min: 500, max: 3_600_000, fallback: 30_000 }),
    attemptsMax: integerOption('attemptsMax', attemptsMax, { min: 1, max: 1_000, fallback: 10 }),
    stepsMax: integerOption('stepsMax', stepsMax, { min: 1, max: 10_000, fallback: 200 }),
    stepCharsMax: integerOption('stepCharsMax', stepCharsMax, range),
    resolves: resolve !== undefined,
  };
}

/** A step's options after checking. */
export interface StepPolicy {
  readonly kind: 'external' | 'local' | 'tx';
  readonly onUnknown: OnUnknown;
  readonly inDoubt: (error: unknown) => boolean;
  readonly fingerprint: unknown;
}

const always = (): boolean => true;

/** @throws OPTION_INVALID */
export function checkStep(
  name: string,
  options: StepOptions | TxStepOptions,
  run: unknown,
): StepPolicy {
  functionOption(`step "${name}": run`, run);
  if ('tx' in options && options.tx) {
    knownOptions(`step "${name}" with tx`, options, ['tx', 'fingerprint']);
    const { fingerprint } = options;
    return { kind: 'tx', onUnknown: 'retry', inDoubt: always, fingerprint };
  }
  knownOptions(`step "${name}"`, options, [
    'external',
    'onUnknown',
    'inDoubt',
    'fingerprint',
    'tx',
  ]);
  const { external = true, onUnknown, inDoubt = always, fingerprint } = options as StepOptions;
  functionOption('inDoubt', inDoubt);
  const takesKey = (run as (...args: unknown[]) => unknown).length > 0;
  return {
    kind: external ? 'external' : 'local',
    onUnknown: onUnknown ?? (takesKey || !external ? 'retry' : 'indeterminate'),
    inDoubt,
    fingerprint,
  };
}
