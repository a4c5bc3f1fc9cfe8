/**
 * The steps of one attempt: which are recorded, which were asked for, how the attempt stands. Keeps
 * the rules; doing a step is step-runner's part.
 */
import type { StagedStep, StepKind } from '../../contract/staged-store.ts';
import { show, TurngateError } from '../../core/errors.ts';
import { fingerprintOf, sameFingerprint } from '../../core/fingerprint.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { sleep } from '../../runtime/wait.ts';
import { isRefusal } from '../declaration.ts';
import type { StagedPolicy } from './staged-declaration.ts';

/** Parallel branches replay at their own pace; this long they may take to ask for what is recorded. */
const replayLimitMs = 1_000;
const nameCharsMax = 100;
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point.
const controlCharacters = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** Ends an attempt that goes on later: thrown out of a long sleep, never shown to callers. */
export class Suspended extends Error {
  override readonly name = 'Suspended';
  readonly wakeInMs: number;

  constructor(wakeInMs: number) {
    super('the operation sleeps; let this error through');
    this.wakeInMs = wakeInMs;
  }
}

/** What the steps of one attempt have come to. */
export class StepBook {
  /** The first error that ends the attempt, whatever the handler does with it. */
  failure: { readonly error: unknown } | undefined;
  /** An external step whose outcome nobody knows and which is not to be repeated. */
  unknownStep: string | undefined;
  /** Did this attempt get a step done? */
  moved = false;
  private readonly operation: string;
  private readonly policy: StagedPolicy;
  private readonly runtime: Runtime;
  private readonly recorded: ReadonlyMap<string, StagedStep>;
  private readonly asked = new Set<string>();
  private readonly effects = new Set<string>();
  private readonly pending = new Set<Promise<unknown>>();
  private seq: number;
  private closed = false;

  constructor(policy: StagedPolicy, runtime: Runtime, steps: readonly StagedStep[]) {
    this.operation = policy.name;
    this.policy = policy;
    this.runtime = runtime;
    this.recorded = new Map(steps.map((step) => [step.name, step]));
    this.seq = steps.reduce((most, { seq }) => Math.max(most, seq), 0);
    for (const { name, kind } of steps) if (hasEffect(kind)) this.effects.add(name);
  }

  /** Has anything begun that a released key would forget? */
  get hasEffects(): boolean {
    return this.effects.size > 0;
  }

  begins(name: string): void {
    this.effects.add(name);
  }

  /** It certainly did not happen. */
  didNotHappen(name: string): void {
    this.effects.delete(name);
  }

  /** Enters a step: one name, one step. */
  enter(name: string): void {
    if (this.closed) throw this.invalid(`step ${show(name)} was called after the handler ended`);
    if (this.failure !== undefined) throw this.failure.error;
    const fits = typeof name === 'string' && name.length >= 1 && name.length <= nameCharsMax;
    if (!fits || controlCharacters.test(name) || !name.isWellFormed()) {
      const rule = `1 to ${nameCharsMax} characters without control characters`;
      throw this.invalid(`a step's name must be ${rule}; got ${show(name)}`);
    }
    if (this.asked.has(name)) {
      throw this.invalid(`the name "${name}" is used twice; put what differs into the name`);
    }
    if (this.asked.size >= this.policy.stepsMax) {
      throw this.invalid(`more than ${this.policy.stepsMax} steps (stepsMax)`);
    }
    this.asked.add(name);
  }

  /** What is recorded for the step, if it is the same step. @throws STEP_DIVERGED */
  recall(name: string, kind: StepKind, fingerprint: unknown): StagedStep | undefined {
    const step = this.recorded.get(name);
    if (step === undefined) return undefined;
    if (step.kind !== kind) {
      throw this.diverged(`step "${name}" is recorded as ${step.kind} and is now ${kind}`);
    }
    const given = digest(fingerprint);
    if (step.fingerprint !== undefined && given !== undefined) {
      if (!sameFingerprint(step.fingerprint, given)) {
        throw this.diverged(`step "${name}" is recorded for another input (fingerprint)`);
      }
    }
    return step;
  }

  /**
   * A step that is not recorded may begin only when all recorded ones have been asked for: otherwise
   * the code took another path, and an effect could be repeated under another name.
   */
  async mayBegin(name: string): Promise<number> {
    const endMonoMs = this.runtime.monoMs() + replayLimitMs;
    for (let pauseMs = 0; ; pauseMs = pauseMs * 2 + 1) {
      const missing = this.unasked();
      if (missing === undefined) return ++this.seq;
      if (this.failure !== undefined) throw this.failure.error;
      if (this.runtime.monoMs() >= endMonoMs) {
        throw this.diverged(
          `step "${name}" would begin although recorded step "${missing}" was not asked for`,
        );
      }
      await sleep(this.runtime, Math.min(pauseMs, 100));
    }
  }

  /** Follows a step until it settles; what it fails with ends the attempt. */
  async follow<T>(step: Promise<T>): Promise<T> {
    this.pending.add(step);
    try {
      return await step;
    } catch (error) {
      if (!isRefusal(error)) this.fail(error);
      throw error;
    } finally {
      this.pending.delete(step);
    }
  }

  fail(error: unknown): void {
    this.failure ??= { error };
  }

  /** The handler has ended: no step may begin any more, and those in flight settle. */
  async close(returned: boolean): Promise<void> {
    this.closed = true;
    const left = this.pending.size;
    while (this.pending.size > 0) await Promise.allSettled(this.pending);
    if (!returned) return;
    if (left > 0) this.fail(this.invalid('the handler returned before its steps: await each'));
    const missing = this.unasked();
    if (missing === undefined) return;
    this.fail(this.diverged(`the handler returned without the recorded step "${missing}"`));
  }

  invalid(why: string): TurngateError {
    return new TurngateError('STEP_INVALID', `${this.operation}: ${why}`);
  }

  private diverged(why: string): TurngateError {
    return new TurngateError('STEP_DIVERGED', `${this.operation}: ${why}`);
  }

  private unasked(): string | undefined {
    for (const name of this.recorded.keys()) if (!this.asked.has(name)) return name;
    return undefined;
  }
}

/** The stored digest of what a step was given. */
export function digest(value: unknown): string | undefined {
  return value === undefined ? undefined : fingerprintOf(value);
}

function hasEffect(kind: StepKind): boolean {
  return kind === 'external' || kind === 'tx';
}
