/** One contest at work: what the storm asks of a contender's nodes. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Store } from '../trade/store.ts';
import type { Chance } from './chance.ts';
import type { ScenarioNodes } from './fleets.ts';
import type { Ask, Reply, ScenarioStage } from './scenario.ts';

/** What a stage is made of. */
export interface StageParts {
  readonly scenario: string;
  readonly contender: string;
  readonly nodes: ScenarioNodes;
  readonly store: Store;
  readonly chance: Chance;
  readonly quick: boolean;
}

type Verbs = Record<string, unknown>;

const triesMax = 10;
const pauseMs = { min: 20, max: 60 };

export class ContestStage implements ScenarioStage<Verbs> {
  readonly chance: Chance;
  readonly quick: boolean;
  readonly nodeCount: number;
  readonly store: Store;
  private readonly parts: StageParts;

  constructor(parts: StageParts) {
    this.parts = parts;
    this.chance = parts.chance;
    this.quick = parts.quick;
    this.nodeCount = parts.nodes.count;
    this.store = parts.store;
  }

  async ask({ node, onReached, ...call }: Ask<Verbs, string>): Promise<Reply> {
    const { nodes, scenario, contender } = this.parts;
    return await nodes.call(node, { scenario, contender, ...call }, onReached);
  }

  async askUntilSettled(ask: Ask<Verbs, string>): Promise<Reply> {
    let reply = await this.ask(ask);
    for (let tried = 1; reply.kind === 'failed' && tried < triesMax; tried++) {
      await sleep(this.chance.between(pauseMs.min, pauseMs.max));
      reply = await this.ask({ ...ask, node: ask.node + tried });
    }
    return reply;
  }

  async kill(node: number): Promise<void> {
    await this.parts.nodes.killAndReplace(node);
  }
}
