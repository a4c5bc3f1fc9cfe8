/** kill -9 in the middle of a call. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ask, ScenarioStage } from './scenario.ts';

const lastWorksMsMax = 60;

/** The node is killed soon after the call has come to its point; nobody hears an answer. */
export async function dieOver<Verbs, Verb extends keyof Verbs>(
  stage: ScenarioStage<Verbs>,
  ask: Ask<Verbs, Verb> & { readonly hangAt: string },
): Promise<void> {
  let lost: Promise<unknown> = Promise.resolve();
  const reached = new Promise<void>((onReached) => {
    lost = stage.ask({ ...ask, onReached });
  });
  await Promise.race([reached, lost]);
  await sleep(stage.chance.between(0, lastWorksMsMax)); // What runs beside it gets a little further.
  await stage.kill(ask.node);
  await lost;
}
