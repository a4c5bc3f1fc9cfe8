/** What sagas and TCC transactions have in common: whom they run for, and when they stop trying. */
import { integerOption, knownOptions } from '../core/option.ts';
import { systemRuntime } from '../runtime/runtime.ts';

/** The declaration of anything that is coordinated over several branches. */
export interface CoordinatedDeclaration<Input> {
  /** Names it for ever, like `order.refund-saga`. */
  readonly name: string;
  /** The business number it runs for: the same key, the same run. */
  readonly key: (input: Input) => string;
  readonly scope?: (input: Input) => string;
  /**
   * After so many failures in a row it is parked for an operator; see staged operations.
   *
   * @unit attempts, integer, 2 to 1_000
   * @default 20
   */
  readonly attemptsMax?: number;
  /** See staged operations. @unit milliseconds, integer, 500 to 3_600_000; default 30_000 */
  readonly leaseMs?: number;
}

/** Until when a run goes forward. */
export interface ForwardLimits {
  readonly deadlineMs: number;
  readonly attemptsMax: number;
}

const known = ['name', 'key', 'scope', 'deadlineMs', 'attemptsMax', 'leaseMs'];

/**
 * Checks what both have; `own` are the names only this one has.
 *
 * @throws OPTION_INVALID
 */
export function checkKnown(what: string, declaration: object, own: readonly string[]): void {
  knownOptions(what, declaration, [...known, ...own]);
}

/** @throws OPTION_INVALID */
export function deadlineOption(deadlineMs: number | undefined, fallback: number): number {
  return integerOption('deadlineMs', deadlineMs, { min: 100, max: 31 * 86_400_000, fallback });
}

/** @throws OPTION_INVALID */
export function forwardAttemptsOption(
  option: string,
  attemptsMax: number | undefined,
  fallback: number,
): number {
  return integerOption(option, attemptsMax, { min: 1, max: 1_000, fallback });
}

/** Has a step begun too late, or too often, to go forward any more? */
export function isTooLate(limits: ForwardLimits, startMs: number, attempt: number): boolean {
  return attempt > limits.attemptsMax || systemRuntime.wallMs() > startMs + limits.deadlineMs;
}

/** The part of the staged operation that is the same; one step to do and one to undo each branch. */
export function stagedFrame<Input>(
  { name, key, scope, leaseMs, attemptsMax = 20 }: CoordinatedDeclaration<Input>,
  branches: number,
) {
  return {
    name,
    key,
    attemptsMax,
    ...(scope === undefined ? {} : { scope }),
    ...(leaseMs === undefined ? {} : { leaseMs }),
    stepsMax: 2 * branches + 10,
  };
}
