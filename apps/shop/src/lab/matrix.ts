/** Runs every chosen implementation under every chosen storm and compares it with the theory. */
import { type AuditReport, audit } from './audit.ts';
import { createChance } from './chance.ts';
import type { Contest } from './contest.ts';
import type { LabDatabase } from './database.ts';
import { expectations, type Theory } from './expectations.ts';
import type { PaymentServers } from './fleets.ts';
import type { ImplementationId } from './implementations.ts';
import { Stage } from './stage.ts';
import { type StormId, stormIds, storms } from './storms/index.ts';
import type { Storm } from './storms/storm.ts';
import { mismatchOf } from './verdict.ts';
import { withLimit } from './with-limit.ts';

export interface Plan {
  /** The payment of an order: each of these under each of the storms. */
  readonly implementations: readonly ImplementationId[];
  readonly storms: readonly StormId[];
  /** The rest of the trade. */
  readonly contests: readonly Contest[];
  readonly quick: boolean;
  readonly seed: number;
}

export interface CellResult {
  readonly implementation: ImplementationId;
  readonly storm: StormId;
  readonly theory: Theory;
  readonly durationMs: number;
  /** Undefined when the storm itself broke; `mismatch` says how. */
  readonly report: AuditReport | undefined;
  /** How the cell differs from the theory; undefined when it does not. */
  readonly mismatch: string | undefined;
}

export interface MatrixParts {
  readonly plan: Plan;
  readonly database: LabDatabase;
  readonly fleet: PaymentServers;
  readonly signal: AbortSignal;
  onCell(cell: CellResult): void;
}

const cellLimitMs = 20_000;

export async function runMatrix(parts: MatrixParts): Promise<CellResult[]> {
  const { plan, signal, onCell } = parts;
  const results: CellResult[] = [];
  for (const implementation of plan.implementations) {
    for (const batch of batchesOf(plan.storms)) {
      signal.throwIfAborted();
      const cells = batch.map((storm) => runCell(parts, implementation, storm));
      for (const cell of await Promise.all(cells)) {
        signal.throwIfAborted(); // What breaks because we are stopping is not a result.
        results.push(cell);
        onCell(cell);
      }
    }
  }
  return results;
}

/** Storms that run at the same time; nearly always one. */
function batchesOf(ids: readonly StormId[]): StormId[][] {
  const batches: StormId[][] = [];
  for (const id of ids) {
    const { alongside = false }: Storm = storms[id];
    const last = batches.at(-1);
    const follows = last?.at(-1) === stormIds[stormIds.indexOf(id) - 1];
    if (alongside && follows && last !== undefined) last.push(id);
    else batches.push([id]);
  }
  return batches;
}

async function runCell(
  parts: MatrixParts,
  implementation: ImplementationId,
  storm: StormId,
): Promise<CellResult> {
  const theory = expectations[implementation][storm];
  const startMonoMs = performance.now();
  const end = (outcome: Pick<CellResult, 'report' | 'mismatch'>): CellResult => {
    const durationMs = Math.round(performance.now() - startMonoMs);
    return { implementation, storm, theory, durationMs, ...outcome };
  };
  try {
    const report = await withLimit(
      playCell(parts, implementation, storm),
      cellLimitMs,
      parts.signal,
    );
    return end({ report, mismatch: mismatchOf(report, theory) });
  } catch (error) {
    // Whatever still runs there must not reach into the next cell.
    if (!parts.signal.aborted) await parts.fleet.replaceAll();
    const why = error instanceof Error ? error.message : String(error);
    return end({ report: undefined, mismatch: `the storm broke: ${why}` });
  }
}

async function playCell(
  { plan, database, fleet }: MatrixParts,
  implementation: ImplementationId,
  storm: StormId,
): Promise<AuditReport> {
  const cell = `${implementation}/${storm}`;
  const { pool } = database;
  const chance = createChance(plan.seed, cell);
  await fleet.ready();
  const stage = new Stage({ cell, implementation, fleet, pool, chance, quick: plan.quick });
  await storms[storm].run(stage);
  await fleet.settle();
  return await audit(pool, cell, stage.told);
}
