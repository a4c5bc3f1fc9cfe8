/**
 * Every experiment on every framework and store. The layer is the same over every store, so that by
 * default the rarer ones are tried behind one framework each; `TURNGATE_HTTP_ALL=1` tries them all.
 */
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { answerExperiments } from './experiments/answers.ts';
import { flightExperiments } from './experiments/flights.ts';
import { requestExperiments } from './experiments/requests.ts';
import { conduct, type Experiment, experiments } from './experiments.ts';
import { expressFrameworks } from './frameworks/express.ts';
import { fastifyFramework } from './frameworks/fastify.ts';
import { honoFramework } from './frameworks/hono.ts';
import { koaFramework } from './frameworks/koa.ts';
import { nestFrameworks } from './frameworks/nestjs.ts';
import { mariadbWorld, redisWorld, sqliteWorld } from './more-worlds.ts';
import { type Framework, memoryWorld, postgresWorld, type World } from './world.ts';

const postgresUrl = inject('postgresUrl' as never) as string;
const mariadbUrl = inject('mariadbUrl' as never) as string;
const redisUrl = inject('redisUrl' as never) as string;
const all = process.env['TURNGATE_HTTP_ALL'] === '1';
const frameworks = [
  ...expressFrameworks,
  ...nestFrameworks,
  fastifyFramework,
  honoFramework,
  koaFramework,
];
const late = 'no byte leaves before the commit: a commit that fails is not a success';
const swallowed = 'L67: a swallowed failed statement is not a success';
const deadlock = 'a deadlock victim is told to come again, and does';

interface Store {
  readonly name: string;
  readonly open: () => Promise<World>;
  readonly missing: boolean;
  readonly behind: readonly Framework[];
  /** Default: all. */
  readonly experiments?: readonly Experiment[];
  /** Laws it cannot show, with the reason. */
  readonly unable?: Readonly<Record<string, string>>;
}

const stores: readonly Store[] = [
  {
    name: 'memory',
    open: memoryWorld,
    missing: false,
    behind: frameworks,
    unable: {
      [late]: 'it refuses nothing at commit',
      [swallowed]: 'its writes do not fail',
      [deadlock]: 'it locks nothing',
    },
  },
  {
    name: 'postgres',
    open: () => postgresWorld(postgresUrl),
    missing: postgresUrl === '',
    behind: frameworks,
  },
  {
    name: 'MariaDB',
    open: () => mariadbWorld(mariadbUrl),
    missing: mariadbUrl === '',
    behind: all ? frameworks : [fastifyFramework],
    unable: {
      [late]: 'it has no deferred constraints',
      [swallowed]: 'only a deadlock undoes the whole: mysql/operations.test.ts has a real one',
    },
  },
  {
    name: 'SQLite',
    open: sqliteWorld,
    missing: false,
    behind: all ? frameworks : [koaFramework],
    unable: { [deadlock]: 'it has one writer at a time' },
  },
  {
    name: 'Redis',
    open: () => redisWorld(redisUrl),
    missing: redisUrl === '',
    behind: all ? frameworks : [honoFramework],
    // The others are about what is rolled back; here nothing is, the effects are elsewhere.
    experiments: [...answerExperiments, ...requestExperiments, ...flightExperiments],
  },
];

for (const store of stores) {
  describe.skipIf(store.missing)(`HTTP laws on ${store.name}`, () => {
    let world: World;
    beforeAll(async () => {
      world = await store.open();
    });
    afterAll(() => world.close());

    for (const framework of store.behind) {
      describe(framework.name, () => {
        const shown = store.experiments ?? experiments;
        for (const experiment of framework.only === 'requests' ? requestExperiments : shown) {
          const { law } = experiment;
          const unable = [store, framework].find((one) => one.unable?.[law] !== undefined);
          if (unable === undefined) it(law, () => conduct(experiment, framework, world));
          else it.skip(`${law} (not on ${unable.name}: ${unable.unable?.[law]})`, () => {});
        }
      });
    }
  });
}
