/** One contender in one scenario: what the audits found there, in words and against the theory. */
import type { AnyScenario, Contender } from './scenario.ts';
import { scenarios } from './scenarios.ts';

/** One contender in one scenario. */
export interface Contest {
  readonly scenario: string;
  readonly contender: string;
}

/** How often each law was broken, by its id. */
export type Breaches = Readonly<Record<string, number>>;

/** What the audits found after a storm. */
export interface Findings {
  readonly breaches: Breaches;
  /** What `GET /api/audit` of the shop says of the same tables: violations by rule. */
  readonly shopAudit: Breaches;
}

/** A scenario and one of its contenders. @throws RangeError when there are none of this name */
export function partsOf(contest: Contest): {
  readonly scenario: AnyScenario;
  readonly contender: Contender<Record<string, unknown>, string>;
} {
  const scenario = scenarios[contest.scenario];
  const contender = scenario?.contenders[contest.contender];
  if (scenario === undefined || contender === undefined) {
    throw new RangeError(`there is no ${contest.scenario} × ${contest.contender}`);
  }
  return { scenario, contender };
}

/** What is wrong with a contest; undefined when it came out as the theory says. */
export function mismatchOf(findings: Findings, contest: Contest): string | undefined {
  const { scenario, contender } = partsOf(contest);
  const { breaches, shopAudit } = findings;
  const found = breachesInWords(scenario, breaches) || 'no breach';
  if (contender.breaks.length === 0) {
    const rules = Object.keys(shopAudit);
    if (totalBreaches(breaches) > 0) return `should be clean (${contender.why}); shows ${found}`;
    return rules.length === 0 ? undefined : `the shop's own audit finds ${rules.join(', ')}`;
  }
  const missing = contender.breaks.filter((law) => !breaches[law]);
  if (missing.length === 0) return undefined;
  const names = missing.map((law) => scenario.laws[law]?.many ?? law).join(' and ');
  return `should show ${names} (${contender.why}); shows ${found}`;
}

/** Like `4 payments booked twice, 1 order lost`; empty for none. */
export function breachesInWords({ laws }: AnyScenario, breaches: Breaches): string {
  return Object.entries(laws)
    .map(([law, { one, many }]) => ({ count: breaches[law] ?? 0, one, many }))
    .filter(({ count }) => count > 0)
    .map(({ count, one, many }) => `${count} ${count === 1 ? one : many}`)
    .join(', ');
}

function totalBreaches(breaches: Breaches): number {
  return Object.values(breaches).reduce((sum, count) => sum + count, 0);
}
