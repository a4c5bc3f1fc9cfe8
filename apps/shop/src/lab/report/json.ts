/** The run as JSON, for programs. */
import type { AnyScenario } from '../scenario.ts';
import { scenarios } from '../scenarios.ts';
import { storms } from '../storms/index.ts';
import { describe, type LabResult, mismatches } from './result.ts';

/** Raised when a field changes its meaning or goes away. */
const formatVersion = 1;

export function jsonReport(result: LabResult): string {
  const { plan, cells, contests, startedAt, durationMs, nodeVersion, postgresVersion } = result;
  const report = {
    formatVersion,
    asTheory: mismatches(result).length === 0,
    seed: plan.seed,
    quick: plan.quick,
    startedAt: startedAt.toISOString(),
    durationMs,
    nodeVersion,
    postgresVersion,
    implementations: plan.implementations.map((id) => {
      const { title, idea, wrong } = describe(id);
      return { id, title, idea, wrong };
    }),
    storms: plan.storms.map((id) => ({ id, title: storms[id].title, story: storms[id].story })),
    cells: cells.map(({ report: audited, mismatch, ...cell }) => ({
      ...cell,
      asTheory: mismatch === undefined,
      mismatch: mismatch ?? null,
      audit: audited ?? null,
    })),
    scenarios: [...new Set(contests.map(({ scenario }) => scenario))].map(scenarioFacts),
    contests: contests.map(({ findings, mismatch, ...contest }) => ({
      ...contest,
      asTheory: mismatch === undefined,
      mismatch: mismatch ?? null,
      breaches: findings?.breaches ?? null,
      shopAudit: findings?.shopAudit ?? null,
    })),
  };
  return `${JSON.stringify(report, null, 2)}\n`;
}

function scenarioFacts(id: string) {
  const { title, story, laws, contenders } = scenarios[id] as AnyScenario;
  const described = Object.entries(contenders).map(([contender, { open: _, ...facts }]) => ({
    id: contender,
    ...facts,
    wrong: facts.breaks.length > 0,
  }));
  return { id, title, story, laws, contenders: described };
}
