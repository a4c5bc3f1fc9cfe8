/** Moves a row from state to state under its lock, by a guarded UPDATE and a history row. */
import type { SqlSession, SqlValue } from '../contract/sql-session.ts';
import { optionError } from '../core/option.ts';
import { emit } from '../runtime/events.ts';
import { type FlowDeclaration, type FlowPlan, planFlow, quoteIdentifier } from './definition.ts';
import { moveInSteps, type Seen } from './move-in-steps.ts';

/** How a transition ended. None of them is an exception: all four are expected. */
export type FlowResult<State extends string> =
  | { readonly kind: 'applied'; readonly from: State; readonly to: State; readonly version: bigint }
  /** The row is at the target, or past it: the event has happened before. */
  | { readonly kind: 'already'; readonly state: State }
  /** The row is in a state from which the event is not allowed. */
  | { readonly kind: 'refused'; readonly state: State }
  | { readonly kind: 'missing' };

/** One firing. */
export interface Firing<Tx> {
  /** The open transaction: the state, its history row and your other writes commit together. */
  readonly tx: Tx;
  readonly id: string;
  /** Other columns to change, only if the state moves. */
  readonly set?: Readonly<Record<string, SqlValue>>;
}

/** A state machine that can be fired. */
export interface Flow<Tx, State extends string, Event extends string> {
  readonly name: string;
  fire(event: Event, firing: Firing<Tx>): Promise<FlowResult<State>>;
  /** The machine as a Mermaid state diagram. */
  mermaid(): string;
}

/**
 * Declares a state machine over a table.
 *
 * @param session how to speak to a transaction handle, for example `postgresSession`
 * @throws OPTION_INVALID before any I/O
 */
export function defineFlow<Tx, const State extends string, const Event extends string>(
  declaration: FlowDeclaration<State, Event>,
  session: (tx: Tx) => SqlSession,
): Flow<Tx, State, Event> {
  const plan = planFlow(declaration);
  return {
    name: plan.name,
    async fire(event, { tx, id, set = {} }) {
      if (!Object.hasOwn(plan.transitions, event)) {
        throw optionError('event', `one of ${Object.keys(plan.transitions).join(', ')}`, event);
      }
      const result = await move(plan, event, session(tx), id, set);
      emit('flow', { type: result.kind, flow: plan.name, event, id });
      return result;
    },
    mermaid: () => drawMermaid(plan),
  };
}

async function move<State extends string, Event extends string>(
  plan: FlowPlan<State, Event>,
  event: Event,
  session: SqlSession,
  id: string,
  set: Readonly<Record<string, SqlValue>>,
): Promise<FlowResult<State>> {
  const way = session.dialect === 'postgres' ? moveAtOnce : moveInSteps;
  const seen = await way(plan, event, session, id, set);
  if (seen === undefined) return { kind: 'missing' };
  const { current: state, version } = seen;
  const { to } = plan.transitions[event];
  if (version !== undefined) return { kind: 'applied', from: state, to, version };
  return { kind: plan.after.get(event)?.has(state) ? 'already' : 'refused', state };
}

async function moveAtOnce<State extends string, Event extends string>(
  plan: FlowPlan<State, Event>,
  event: Event,
  session: SqlSession,
  id: string,
  set: Readonly<Record<string, SqlValue>>,
): Promise<Seen<State> | undefined> {
  const { from, to } = plan.transitions[event];
  const names = Object.keys(set);
  const others = names.map((name, i) => `, ${quoteIdentifier('set', name)} = $${i + 6}`).join('');
  const values = [id, [...from].join(','), to, plan.name, event, ...names.map((name) => set[name])];
  const { rows } = await session.query(moveText(plan, others), values as SqlValue[]);
  const [row] = rows;
  if (row === undefined) return undefined;
  const version = row['version'] == null ? undefined : BigInt(row['version'] as string);
  return { current: row['current'] as State, version };
}

/**
 * One statement: locks the row, moves it if its state allows, writes the history row, and says what
 * it found. The allowed states travel as one text, which every client can bind.
 */
function moveText<State extends string, Event extends string>(
  { table, id, state, version }: FlowPlan<State, Event>,
  others: string,
): string {
  return `WITH seen AS (
    SELECT ${id} AS id, ${state}::text AS current FROM ${table} WHERE ${id} = $1 FOR NO KEY UPDATE),
  moved AS (
    UPDATE ${table} AS t SET ${state} = $3, ${version} = t.${version} + 1${others}
    FROM seen
    WHERE t.${id} = seen.id AND seen.current = ANY (string_to_array($2, ','))
    RETURNING t.${version} AS version),
  noted AS (
    INSERT INTO turngate_transition (flow, entity_id, version, event, from_state, to_state)
    SELECT $4, seen.id::text, moved.version, $5, seen.current, $3 FROM seen, moved)
  SELECT seen.current, moved.version::text AS version FROM seen LEFT JOIN moved ON true`;
}

function drawMermaid<State extends string, Event extends string>(
  plan: FlowPlan<State, Event>,
): string {
  const lines = Object.entries<{ from: readonly State[]; to: State }>(plan.transitions).flatMap(
    ([event, { from, to }]) => from.map((state) => `  ${state} --> ${to}: ${event}`),
  );
  return ['stateDiagram-v2', ...lines].join('\n');
}
