/**
 * SAGA: steps with their undos, as a staged operation. Lease, fence, take-over, recorded steps, retries
 * and parking are those of staged operations; here is only the order of things.
 */
import { isTurngateError, refuse, type TurngateError } from '../core/errors.ts';
import { functionOption, knownOptions, optionError } from '../core/option.ts';
import type {
  StagedContext,
  StagedDeclaration,
  StepContext,
} from '../idempotency/staged/staged-declaration.ts';
import {
  type CoordinatedDeclaration,
  checkKnown,
  deadlineOption,
  type ForwardLimits,
  forwardAttemptsOption,
  isTooLate,
  stagedFrame,
} from './coordinated.ts';

/** What a step's do gets. */
export interface DoContext<Input> extends StepContext {
  readonly input: Input;
  /** What earlier steps returned, by name. */
  readonly outputs: Readonly<Record<string, unknown>>;
}

/** What a step's undo gets besides. */
export interface UndoContext<Input> extends DoContext<Input> {
  /** `unknown`: the do began, and nobody knows whether it happened. Undo it all the same. */
  readonly outcome: 'done' | 'unknown';
  /** What the do returned, when it is known. */
  readonly output: unknown;
}

/** One step. */
export interface SagaStep<Input> {
  /** Unique in the saga, 1 to 64 letters, digits, dots, dashes and underscores. */
  readonly name: string;
  /**
   * Does the step. Send `providerKey` along as the idempotency key: the step may run again under it.
   * `throw refuse(…)` says no for business reasons and starts the undoing; any other error is tried
   * again.
   */
  readonly do: (context: DoContext<Input>) => Promise<unknown> | unknown;
  /**
   * Undoes it, also when it is not known whether it was done. It must bear repetition, and it cannot
   * refuse: it is tried until it works, then parked for an operator.
   */
  readonly undo?: (context: UndoContext<Input>) => Promise<unknown> | unknown;
  /** After this step there is no way back: later ones are retried, never undone. At most one. */
  readonly pivot?: boolean;
  /** Neighbouring steps with the same word here run side by side. */
  readonly parallel?: string;
}

/** A saga. */
export interface SagaDeclaration<Input> extends CoordinatedDeclaration<Input> {
  readonly steps: readonly SagaStep<Input>[];
  /**
   * Before the pivot: after this the saga turns back.
   *
   * @unit milliseconds, integer, 100 to 31 days
   * @default 86_400_000
   */
  readonly deadlineMs?: number;
  /**
   * Before the pivot: after so many attempts the saga turns back.
   *
   * @unit attempts, integer, 1 to 1_000
   * @default 5
   */
  readonly forwardAttemptsMax?: number;
}

/** What a finished saga returns: the steps' outputs by name. One that was undone is REFUSED. */
export type SagaOutputs = Readonly<Record<string, unknown>>;

/** The code under which a saga that was undone is refused; `data` tells which step, and why. */
export const sagaUndone = 'SAGA_UNDONE';
const gaveUp = 'SAGA_GAVE_UP';

const stepName = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Turns a saga into a staged operation: `gate.stagedOperation(defineSaga({ … }))`. Start it by calling
 * it, or by `enqueue(tx, input)` inside your transaction.
 *
 * Not promised: isolation. Between a step and its undo others see what it did; see the guide for the
 * reserve-and-settle pattern and the guard.
 *
 * @throws OPTION_INVALID
 */
export function defineSaga<Tx, Input>(
  declaration: SagaDeclaration<Input>,
): StagedDeclaration<Tx, Input, SagaOutputs> {
  checkKnown('saga', declaration, ['steps', 'forwardAttemptsMax']);
  const groups = groupsOf(declaration.steps);
  const { deadlineMs, forwardAttemptsMax } = declaration;
  const limits = {
    deadlineMs: deadlineOption(deadlineMs, 86_400_000),
    attemptsMax: forwardAttemptsOption('forwardAttemptsMax', forwardAttemptsMax, 5),
  };
  return {
    ...stagedFrame(declaration, declaration.steps.length),
    run: (input, context) => new Run<Tx, Input>(input, context, limits).all(groups),
  };
}

/** One attempt: replays what is recorded, goes on from there. */
class Run<Tx, Input> {
  private readonly input: Input;
  private readonly context: StagedContext<Tx>;
  private readonly limits: ForwardLimits;
  private readonly outputs: Record<string, unknown> = {};
  private readonly unknown = new Set<string>();
  private startMs = 0;
  private pivoted = false;

  constructor(input: Input, context: StagedContext<Tx>, limits: ForwardLimits) {
    this.input = input;
    this.context = context;
    this.limits = limits;
  }

  async all(groups: readonly (readonly SagaStep<Input>[])[]): Promise<SagaOutputs> {
    this.startMs = (await this.context.now('started')).getTime();
    const done: (readonly SagaStep<Input>[])[] = [];
    for (const group of groups) {
      done.push(group);
      const no = await this.group(group);
      if (no === undefined) continue;
      await this.undo(done.reverse());
      throw refuse(sagaUndone, no.message, { step: no.step, code: no.code });
    }
    return this.outputs;
  }

  /** Runs a group; what said no first, if anything did. */
  private async group(
    group: readonly SagaStep<Input>[],
  ): Promise<{ step: string; code: string; message: string } | undefined> {
    const results = await Promise.allSettled(group.map((step) => this.do(step)));
    let no: { step: string; code: string; message: string } | undefined;
    for (const [i, result] of results.entries()) {
      const { name } = group[i] as SagaStep<Input>;
      if (result.status === 'fulfilled') continue;
      const error = result.reason as TurngateError;
      if (!isTurngateError(error, 'REFUSED')) throw error; // Tried again in the next attempt.
      const code = error.refusal?.code ?? '';
      if (code === gaveUp) this.unknown.add(name);
      no ??= { step: name, code, message: error.message };
    }
    if (no !== undefined && this.pivoted) throw afterPivot(no.step);
    if (group.some(({ pivot }) => pivot === true)) this.pivoted = true;
    return no;
  }

  private async do(step: SagaStep<Input>): Promise<void> {
    const { name } = step;
    this.outputs[name] = await this.context.step(`do ${name}`, async (_key, context) => {
      // Inside the step, because only here may a clock be asked: the answer is recorded with it.
      if (!this.pivoted && isTooLate(this.limits, this.startMs, context.attempt)) {
        throw refuse(gaveUp, `step ${name} did not succeed in time`);
      }
      return await step.do({ ...context, input: this.input, outputs: { ...this.outputs } });
    });
  }

  /** Backwards over what was done or may have been done. */
  private async undo(groups: readonly (readonly SagaStep<Input>[])[]): Promise<void> {
    for (const group of groups) {
      const undos = group.map((step) => this.undoStep(step));
      const failed = (await Promise.allSettled(undos)).find(({ status }) => status === 'rejected');
      if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
    }
  }

  private async undoStep(step: SagaStep<Input>): Promise<void> {
    const { name, undo } = step;
    const isDone = name in this.outputs;
    if (undo === undefined || !(isDone || this.unknown.has(name))) return; // It said no: nothing to undo.
    await this.context.step(`undo ${name}`, async (_key, context) => {
      try {
        await undo({
          ...context,
          input: this.input,
          outputs: { ...this.outputs },
          outcome: isDone ? 'done' : 'unknown',
          output: this.outputs[name],
        });
      } catch (error) {
        // An undo cannot say no: whatever it throws is tried again, then parked.
        if (!isTurngateError(error, 'REFUSED')) throw error;
        throw new Error(`the undo of ${name} refused: ${error.message}`, { cause: error });
      }
    });
  }
}

function afterPivot(step: string): Error {
  return new Error(`step ${step} refused after the pivot: it can only be tried again`);
}

/** Neighbours with the same word stand together; every step is checked. */
function groupsOf<Input>(
  steps: readonly SagaStep<Input>[],
): readonly (readonly SagaStep<Input>[])[] {
  if (!Array.isArray(steps) || steps.length === 0)
    throw optionError('steps', 'at least one', steps);
  const names = new Set<string>();
  const groups: SagaStep<Input>[][] = [];
  for (const step of steps as readonly SagaStep<Input>[]) {
    knownOptions('saga step', step, ['name', 'do', 'undo', 'pivot', 'parallel']);
    if (!stepName.test(step.name) || names.has(step.name)) {
      throw optionError('step name', 'unique, 1 to 64 of letters, digits, . _ -', step.name);
    }
    names.add(step.name);
    functionOption(`do of ${step.name}`, step.do);
    if (step.undo !== undefined) functionOption(`undo of ${step.name}`, step.undo);
    const last = groups.at(-1);
    if (last !== undefined && step.parallel !== undefined && last[0]?.parallel === step.parallel) {
      last.push(step);
    } else groups.push([step]);
  }
  if (steps.filter(({ pivot }) => pivot === true).length > 1) {
    throw optionError('pivot', 'set on one step at most', 'several');
  }
  return groups;
}
