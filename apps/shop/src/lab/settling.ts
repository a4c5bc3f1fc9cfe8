/** Around the deaths of coordinators: the same call on every node, and the end of what nobody waits for. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ask, ScenarioStage } from './scenario.ts';
import { countOf } from './trade/count.ts';

const recoveryMaxMs = 15_000;

/** The same call on every node at once. */
export async function askEverywhere<Verbs, Verb extends keyof Verbs>(
  stage: ScenarioStage<Verbs>,
  ask: Omit<Ask<Verbs, Verb>, 'node'>,
): Promise<void> {
  const nodes = Array.from({ length: stage.nodeCount }, (_, node) => node);
  await Promise.all(nodes.map((node) => stage.askUntilSettled({ ...ask, node })));
}

/** Recovery has no caller to answer to. A contender without a record has nothing to wait for. */
export async function untilNobodyWorks<Verbs>({ store }: ScenarioStage<Verbs>): Promise<void> {
  const endMonoMs = performance.now() + recoveryMaxMs;
  const text = `SELECT count(*) AS n FROM turngate_staged WHERE state IN ('running', 'waiting')`;
  while ((await countOf(store.database, text)) > 0 && performance.now() < endMonoMs) {
    await sleep(50);
  }
}
