/**
 * The experiments of the idempotency log (L1 to L63) that concern HTTP, once; each framework runs
 * all of them on each store. An experiment makes an application of its own routes.
 */
import { expect } from 'vitest';
import { answerExperiments } from './experiments/answers.ts';
import { callbackExperiments } from './experiments/callbacks.ts';
import { failureExperiments } from './experiments/failures.ts';
import { flightExperiments } from './experiments/flights.ts';
import { requestExperiments } from './experiments/requests.ts';
import type { App, Framework, Route, World } from './world.ts';

/** What an experiment gets. */
export interface Lab {
  readonly world: World;
  /** Starts the routes on the framework under test; closed after the experiment. */
  app(...routes: Route[]): Promise<App>;
  /** A prefix for this experiment's effect lines. */
  readonly tag: string;
}

/** One experiment: a law and how it is tried. */
export interface Experiment {
  readonly law: string;
  run(lab: Lab): Promise<void>;
}

export const experiments: readonly Experiment[] = [
  ...answerExperiments,
  ...requestExperiments,
  ...flightExperiments,
  ...failureExperiments,
  ...callbackExperiments,
];

let count = 0;

/** Runs one experiment in a fresh application. */
export async function conduct(
  experiment: Experiment,
  framework: Framework,
  world: World,
): Promise<void> {
  const apps: App[] = [];
  const lab: Lab = {
    world,
    tag: `e${++count}.`,
    async app(...routes) {
      // Operations live as long as the gate, so that each experiment has paths of its own.
      const app = await framework.start(
        world,
        routes.map((route) => ({ ...route, path: `/x${count}${route.path}` })),
      );
      apps.push(app);
      return { ...app, url: `${app.url}/x${count}` };
    },
  };
  try {
    await experiment.run(lab);
  } finally {
    await Promise.all(apps.map((app) => app.close()));
  }
  expect(world.gate.load.inFlight).toBe(0);
}
