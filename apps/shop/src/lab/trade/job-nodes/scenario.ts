/** The nightly job goes off on every node, a little apart; in some nights a node dies in it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Period } from 'turngate/job';
import { defineScenario, type ScenarioStage } from '../../scenario.ts';
import { countOf } from '../count.ts';
import { killAt } from '../reach.ts';
import { cronEverywhere } from './cron-everywhere.ts';
import { lockOnly } from './lock-only.ts';
import { markFirst } from './mark-first.ts';
import { right } from './right.ts';
import { beforeCommit, type JobVerbs, jobLaws } from './terms.ts';

/** How far the clocks of the nodes are apart. */
const skewMs = { min: 0, max: 120 };
const killedNights = 2;
const looks = { max: 16, everyMs: 250 };
const dayMs = 86_400_000;

export const jobNodes = defineScenario({
  title: 'job on every node',
  story:
    'The timer of a nightly job goes off on three nodes, up to 120 ms apart; in two nights a node is ' +
    'killed in the job, and the others go on looking.',
  laws: jobLaws,
  tables: [
    'CREATE TABLE lab_interest (period text NOT NULL)',
    'CREATE TABLE lab_period (period text PRIMARY KEY)',
  ],
  contenders: {
    turngate: right,
    'cron-everywhere': cronEverywhere,
    'lock-only': lockOnly,
    'mark-first': markFirst,
  },
  async storm(stage: ScenarioStage<JobVerbs>) {
    const nights = periods(stage.quick ? 6 : 14);
    const quiet = nights.slice(killedNights);
    await Promise.all(
      quiet.map(async (period) => {
        const timers = Array.from({ length: stage.nodeCount }, async (_, node) => {
          await sleep(stage.chance.between(skewMs.min, skewMs.max));
          await stage.askUntilSettled({ verb: 'fire', input: period, node });
        });
        await Promise.all(timers);
      }),
    );
    const deadly = nights.slice(0, killedNights);
    await killAt(
      stage,
      0,
      deadly.map((input) => ({ verb: 'fire', input, hangAt: beforeCommit })),
    );
    await Promise.all(deadly.map((period) => lookUntilRun(stage, period)));
    return { nights: nights.length };
  },
  async audit(sql, { nights }) {
    const runs = await countOf(sql, 'SELECT count(*) AS n FROM lab_interest');
    const done = await countOf(sql, 'SELECT count(DISTINCT period) AS n FROM lab_interest');
    return { twice: runs - done, missed: nights - done };
  },
});

function periods(count: number): Period[] {
  const firstMs = Date.UTC(2026, 10, 1, 18);
  return Array.from({ length: count }, (_, i) => {
    const dueMs = firstMs + i * dayMs;
    return { label: new Date(dueMs).toISOString().slice(0, 10), dueMs };
  });
}

/** The survivors look for open periods again and again, as schedulers do. */
async function lookUntilRun(stage: ScenarioStage<JobVerbs>, period: Period): Promise<void> {
  for (let look = 0; look < looks.max; look++) {
    const reply = await stage.ask({ verb: 'fire', input: period, node: 1 + (look % 2) });
    if (reply.kind === 'done' && reply.value === 'ran') return;
    await sleep(looks.everyMs);
  }
}
