/**
 * A scenario: one storm of the trade, the right way through it, and the textbook mistakes. All contenders
 * work on the shop's own tables, with the same storm, and the same audit counts which law was broken.
 *
 * `npm run lab` plays every contender of every scenario: empties the tables, runs the storm against
 * several node processes, waits until nobody works any more, and audits.
 */
import type { SqlSession } from 'turngate/contract';
import type { Store } from '../trade/store.ts';
import type { Chance } from './chance.ts';

/** What must hold, and how breaches of it read: `3 payments booked twice`. */
export interface Law {
  readonly one: string;
  readonly many: string;
  readonly meaning: string;
}

/** One process of the lab, as a contender sees it. */
export interface NodeParts {
  readonly number: number;
  /**
   * The shop's gate and database. Every statement travels for some milliseconds, for the right one and
   * the wrong ones alike: no contender sleeps to lose its race.
   */
  readonly store: Store;
  /** Runs when the storm is over: stop what goes on by itself. The gate is closed anyway. */
  onEnd(stop: () => Promise<void>): void;
}

/** What the storm does to one call. */
export interface Trial {
  /** Marks a place the call has come to; the storm may leave it hanging there and kill the node. */
  at(point: string): Promise<void>;
}

/** What a contender can do: verbs with their inputs, which travel as JSON like the answers. */
export type Hands<Verbs> = {
  readonly [Verb in keyof Verbs]: (input: Verbs[Verb], trial: Trial) => Promise<unknown>;
};

/** One way to do it. */
export interface Contender<Verbs, LawId extends string> {
  readonly title: string;
  /** What it does, in one sentence; of a wrong one: the mistake. */
  readonly idea: string;
  /** Laws it must be seen breaking, others may break with them. Empty: it is the right one. */
  readonly breaks: readonly LawId[];
  /** Why the theory says so. */
  readonly why: string;
  /** Called once in each node process. */
  open(node: NodeParts): Hands<Verbs>;
}

/** `failed` says nothing about the effect: ask again. */
export type Reply =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'refused'; readonly code: string }
  | { readonly kind: 'failed'; readonly why: string };

/** One call of the storm. Nodes beyond the last go round. */
export interface Ask<Verbs, Verb extends keyof Verbs> {
  readonly node: number;
  readonly verb: Verb;
  readonly input: Verbs[Verb];
  /** The call stays at this point for ever; `onReached` hears of it, `kill` ends it. */
  readonly hangAt?: string;
  readonly onReached?: () => void;
}

/** What a storm works with. */
export interface ScenarioStage<Verbs> {
  readonly chance: Chance;
  /** Fewer of everything, same storm. */
  readonly quick: boolean;
  readonly nodeCount: number;
  /** The shop itself, close to the database: prepares what the storm is about. */
  readonly store: Store;
  ask<Verb extends keyof Verbs>(ask: Ask<Verbs, Verb>): Promise<Reply>;
  /** Asks on one node after the other until the answer is yes or no; `failed` after ten tries. */
  askUntilSettled<Verb extends keyof Verbs>(ask: Ask<Verbs, Verb>): Promise<Reply>;
  /** kill -9 of a node; a new one in its place is starting when this resolves. */
  kill(node: number): Promise<void>;
}

/** A scenario; `Told` is what the storm's clients know at its end. */
export interface Scenario<Verbs, LawId extends string, Told> {
  readonly title: string;
  /** What happens, in one sentence. */
  readonly story: string;
  readonly laws: Readonly<Record<LawId, Law>>;
  /** Statements for the empty schema: tables of its own, constraints that would hide a mistake. */
  readonly tables?: readonly string[];
  readonly contenders: Readonly<Record<string, Contender<Verbs, LawId>>>;
  storm(stage: ScenarioStage<Verbs>): Promise<Told>;
  /** Counts the breaches of each law, from the tables and from what the clients were told. */
  audit(sql: SqlSession, told: Told): Promise<Readonly<Record<LawId, number>>>;
}

/** A scenario as the lab runs it, whatever its verbs and laws. */
export type AnyScenario = Scenario<Record<string, unknown>, string, unknown>;

/** Forgets the types that only the scenario's own parts share. */
export function defineScenario<Verbs, LawId extends string, Told>(
  scenario: Scenario<Verbs, LawId, Told>,
): AnyScenario {
  return scenario as unknown as AnyScenario;
}
