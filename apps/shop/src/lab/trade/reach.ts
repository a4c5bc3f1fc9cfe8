/** Calls that stop at a point, so that their node can be killed exactly there. */
import type { Ask, ScenarioStage } from '../scenario.ts';

const reachLimitMs = 15_000;

/** kill -9 of a node as soon as all these calls, sent to it, have come to their point. */
export async function killAt<Verbs, Verb extends keyof Verbs>(
  stage: ScenarioStage<Verbs>,
  node: number,
  asks: readonly Pick<Ask<Verbs, Verb>, 'verb' | 'input' | 'hangAt'>[],
): Promise<void> {
  const replies: Promise<unknown>[] = [];
  const reached = asks.map(
    (ask) =>
      new Promise<void>((onReached) => {
        replies.push(stage.ask({ ...ask, node, onReached }));
      }),
  );
  await withinLimit(Promise.all(reached));
  await stage.kill(node);
  await Promise.all(replies);
}

async function withinLimit(reached: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new Error('not all calls came to their point');
    timer = setTimeout(() => reject(error), reachLimitMs);
  });
  await Promise.race([reached, late]).finally(() => clearTimeout(timer));
}
