/** How a job is declared. */
import type { SqlSession } from '../contract/sql-session.ts';
import {
  functionOption,
  integerOption,
  knownOptions,
  optionError,
  wordOption,
} from '../core/option.ts';
import { type Calendar, calendarOf, type Period, type Schedule } from './schedule.ts';

/** What a run gets. */
export interface JobContext {
  readonly period: Period;
  /** Grows with every attempt at the period; the number to guard outside writes with. */
  readonly fence: bigint;
  /** Aborts when the lease is lost to another node, or the runner stops. */
  readonly signal: AbortSignal;
  /**
   * Marks the run as done in *your* transaction, so that effect and mark commit together.
   *
   * @throws LEASE_LOST when another node has taken the run over: roll back
   */
  completeIn(sql: SqlSession): Promise<void>;
}

/** A job. */
export interface JobDeclaration {
  /** Names the job for ever: it is part of every run's identity. */
  readonly name: string;
  readonly schedule: Schedule;
  /**
   * What to do about periods that nobody ran: only the `latest` one, `all` of them oldest first, or
   * `skip` those that are more than `graceMs` late.
   *
   * @default 'latest'
   */
  readonly catchUp?: 'latest' | 'all' | 'skip';
  /**
   * With `skip`: how late a run may start.
   *
   * @unit milliseconds, integer, 1_000 to 604_800_000
   * @default 60_000
   */
  readonly graceMs?: number;
  /**
   * With `all`: how many missed periods are made up for at most.
   *
   * @unit periods, integer, 1 to 10_000
   * @default 100
   */
  readonly catchUpMax?: number;
  /**
   * How long a run stays ours if this process stops renewing it: after a crash another node starts
   * it again no earlier.
   *
   * @unit milliseconds, integer, 1_000 to 86_400_000
   * @default 60_000
   */
  readonly leaseMs?: number;
  /**
   * A run that failed is not tried again before this has passed since its start.
   *
   * @unit milliseconds, integer, 0 to 86_400_000
   * @default 10_000
   */
  readonly minHoldMs?: number;
  /**
   * How often a period is tried before it is left failed for an operator.
   *
   * @unit attempts, integer, 1 to 1_000
   * @default 10
   */
  readonly attemptsMax?: number;
  /** Does the work. It may run again after a failure or a crash: guard its effects. */
  readonly run: (context: JobContext) => Promise<void>;
}

/** A declaration after checking. */
export interface Job extends Required<Omit<JobDeclaration, 'schedule'>> {
  readonly calendar: Calendar;
}

const known = [
  'name',
  'schedule',
  'catchUp',
  'graceMs',
  'catchUpMax',
  'leaseMs',
  'minHoldMs',
  'attemptsMax',
  'run',
];
const day = 86_400_000;

/** @throws OPTION_INVALID */
export function defineJob(declaration: JobDeclaration): Job {
  knownOptions('job', declaration, known);
  const { name, run } = declaration;
  if (typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
    throw optionError('name', '1 to 64 of letters, digits, dot, dash and underscore', name);
  }
  functionOption('run', run);
  const number = (
    option: 'graceMs' | 'catchUpMax' | 'leaseMs' | 'minHoldMs' | 'attemptsMax',
    min: number,
    max: number,
    fallback: number,
  ): number => integerOption(option, declaration[option], { min, max, fallback });
  return {
    name,
    run,
    calendar: calendarOf(declaration.schedule),
    catchUp: wordOption('catchUp', declaration.catchUp, ['latest', 'all', 'skip'], 'latest'),
    graceMs: number('graceMs', 1_000, 7 * day, 60_000),
    catchUpMax: number('catchUpMax', 1, 10_000, 100),
    leaseMs: number('leaseMs', 1_000, day, 60_000),
    minHoldMs: number('minHoldMs', 0, day, 10_000),
    attemptsMax: number('attemptsMax', 1, 1_000, 10),
  };
}
