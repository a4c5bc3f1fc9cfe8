/** The outcome of a run, as all reports see it. */
import type { ContestResult } from '../contests.ts';
import { type Implementation, type ImplementationId, implementations } from '../implementations.ts';
import { addLosses, type Losses, noLosses } from '../losses.ts';
import type { CellResult, Plan } from '../matrix.ts';
import type { StormId } from '../storms/index.ts';

export interface LabResult {
  readonly plan: Plan;
  readonly cells: readonly CellResult[];
  readonly contests: readonly ContestResult[];
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly nodeVersion: string;
  readonly postgresVersion: string;
}

export function cellOf(
  { cells }: LabResult,
  implementation: ImplementationId,
  storm: StormId,
): CellResult {
  const found = cells.find(
    (cell) => cell.implementation === implementation && cell.storm === storm,
  );
  if (found === undefined) throw new Error(`no result for ${implementation} × ${storm}`);
  return found;
}

/** All that one implementation has lost. */
export function lossesOf({ cells }: LabResult, implementation: ImplementationId): Losses {
  return cells
    .filter((cell) => cell.implementation === implementation)
    .reduce((sum, { report }) => addLosses(sum, report?.losses ?? noLosses), noLosses);
}

/** What did not come out as the theory says; named as `--only` and `--storm` take it. */
export interface Mismatch {
  readonly way: string;
  readonly storm: string;
  readonly why: string;
}

export function mismatches({ cells, contests }: LabResult): Mismatch[] {
  const played = [
    ...cells.map(({ implementation, storm, mismatch }) => ({
      way: implementation,
      storm,
      mismatch,
    })),
    ...contests.map(({ contender, scenario, mismatch }) => ({
      way: contender,
      storm: scenario,
      mismatch,
    })),
  ];
  return played.flatMap(({ way, storm, mismatch }) =>
    mismatch === undefined ? [] : [{ way, storm, why: mismatch }],
  );
}

/** How many there were to come out. */
export function playedCount({ cells, contests }: LabResult): number {
  return cells.length + contests.length;
}

export function seconds(durationMs: number): string {
  return (durationMs / 1_000).toFixed(1);
}

/** `const` data seen through its interface, so that every entry has the same type. */
export function describe(id: ImplementationId): Implementation {
  return implementations[id];
}
