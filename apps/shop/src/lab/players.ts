/** The contenders that play on one node, opened when the first call for them comes. */
import type { Pool } from 'pg';
import { partsOf } from './contest.ts';
import type { Hands, Reply, Trial } from './scenario.ts';
import { openStore } from './store.ts';
import type { NodeCall } from './wire.ts';

interface Player {
  readonly hands: Hands<Record<string, unknown>>;
  stop(): Promise<void>;
}

export class Players {
  private readonly number: number;
  private readonly pool: Pool;
  private readonly open = new Map<string, Player>();

  constructor(number: number, pool: Pool) {
    this.number = number;
    this.pool = pool;
  }

  async play(call: NodeCall, trial: Trial): Promise<Reply> {
    const hand = this.playerOf(call).hands[call.verb];
    if (hand === undefined) throw new RangeError(`${call.contender} has no verb ${call.verb}`);
    return { kind: 'done', value: (await hand(call.input, trial)) ?? null };
  }

  /** The storm is over: nothing goes on by itself after this. */
  async end(): Promise<Reply> {
    const stopping = [...this.open.values()];
    this.open.clear();
    for (const { stop } of stopping) await stop();
    return { kind: 'done', value: null };
  }

  private playerOf({ scenario, contender }: NodeCall): Player {
    const name = `${scenario}/${contender}`;
    const player = this.open.get(name) ?? this.newPlayer({ scenario, contender });
    this.open.set(name, player);
    return player;
  }

  private newPlayer(contest: Pick<NodeCall, 'scenario' | 'contender'>): Player {
    const store = openStore(this.pool);
    const stops = [() => store.gate.close()];
    const onEnd = (stop: () => Promise<void>): void => void stops.unshift(stop);
    return {
      hands: partsOf(contest).contender.open({ number: this.number, store, onEnd }),
      async stop() {
        for (const stop of stops) await stop();
      },
    };
  }
}
