/** A process that dies at a chosen line, without a process: its store never answers again. */
import type { StagedStore } from '../../src/contract/staged-store.ts';
import type { AnyTx } from './targets.ts';

const never = new Promise<never>(() => {});
const writes = [
  'open',
  'takeOver',
  'startStep',
  'finishStep',
  'dropStep',
  'transactStep',
  'end',
  'leave',
];

/** Counts the writes of a process and kills it at one of them. */
export class Mortal {
  dead = false;
  /** What was called, in order. */
  readonly log: string[] = [];
  private readonly at: number;
  private readonly when: 'before' | 'after';
  private reachedDeath!: () => void;
  readonly died: Promise<void> = new Promise((resolve) => {
    this.reachedDeath = resolve;
  });

  /** @param at the number of the write, from 0; -1 never */
  constructor(at: number, when: 'before' | 'after') {
    this.at = at;
    this.when = when;
  }

  /** Dies here: for handlers. */
  die(): Promise<never> {
    this.dead = true;
    this.reachedDeath();
    return never;
  }

  readonly wrap = (store: StagedStore<AnyTx>): StagedStore<AnyTx> =>
    new Proxy(store, {
      get: (target, name: keyof StagedStore<AnyTx>) => {
        const value = target[name];
        if (typeof value !== 'function') return value;
        const verb = value.bind(target) as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          if (this.dead) return await never;
          if (!writes.includes(name)) return await verb(...args);
          const mine = this.log.push(name) - 1;
          if (mine === this.at && this.when === 'before') return await this.die();
          const answer = await verb(...args);
          if (this.dead || mine === this.at) return await this.die();
          return answer;
        };
      },
    });
}
