/** Plays every chosen contender through every chosen scenario and compares it with the theory. */
import type { Pool } from 'pg';
import { audit as auditShop } from '../trade/audit.ts';
import { createChance } from './chance.ts';
import { type Contest, type Findings, mismatchOf, partsOf } from './contest.ts';
import { emptyTables } from './database.ts';
import type { ScenarioNodes } from './fleets.ts';
import { ContestStage } from './scenario-stage.ts';
import { openStore } from './store.ts';
import { withLimit } from './with-limit.ts';

export interface ContestResult extends Contest {
  readonly durationMs: number;
  /** Undefined when the storm itself broke; `mismatch` says how. */
  readonly findings: Findings | undefined;
  /** How it differs from the theory; undefined when it does not. */
  readonly mismatch: string | undefined;
}

export interface ContestParts {
  readonly contests: readonly Contest[];
  readonly quick: boolean;
  readonly seed: number;
  readonly pool: Pool;
  readonly nodes: ScenarioNodes;
  readonly signal: AbortSignal;
  onContest(result: ContestResult): void;
}

const contestLimitMs = 60_000;

export async function runContests(parts: ContestParts): Promise<ContestResult[]> {
  const results: ContestResult[] = [];
  for (const contest of parts.contests) {
    const result = await runContest(parts, contest);
    parts.signal.throwIfAborted(); // What breaks because we are stopping is not a result.
    results.push(result);
    parts.onContest(result);
  }
  return results;
}

async function runContest(parts: ContestParts, contest: Contest): Promise<ContestResult> {
  const startMonoMs = performance.now();
  const end = (outcome: Pick<ContestResult, 'findings' | 'mismatch'>): ContestResult => ({
    ...contest,
    durationMs: Math.round(performance.now() - startMonoMs),
    ...outcome,
  });
  try {
    const findings = await withLimit(play(parts, contest), contestLimitMs, parts.signal);
    return end({ findings, mismatch: mismatchOf(findings, contest) });
  } catch (error) {
    // Whatever still runs there must not reach into the next contest.
    if (!parts.signal.aborted) await parts.nodes.replaceAll();
    const why = error instanceof Error ? error.message : String(error);
    return end({ findings: undefined, mismatch: `the storm broke: ${why}` });
  }
}

async function play(
  { seed, quick, pool, nodes }: ContestParts,
  contest: Contest,
): Promise<Findings> {
  const { scenario } = partsOf(contest);
  const store = openStore(pool); // Of its own: an operation is declared once per gate.
  const { database } = store;
  await nodes.ready();
  await emptyTables(database);
  // The same storm for every contender: they do not share their scenario's chance, they repeat it.
  const chance = createChance(seed, contest.scenario);
  const stage = new ContestStage({ ...contest, nodes, store, chance, quick });
  const told = await scenario.storm(stage);
  await nodes.settle();
  await nodes.ready();
  for (const reply of await nodes.callAll({ end: true })) {
    if (reply.kind === 'failed') throw new Error(reply.why);
  }
  const breaches = await database.transaction((sql) => scenario.audit(sql, told));
  const { violations } = await auditShop(store);
  await store.gate.close();
  const shopAudit: Record<string, number> = {};
  for (const { rule } of violations) shopAudit[rule] = (shopAudit[rule] ?? 0) + 1;
  return { breaches, shopAudit };
}
