/** A state machine as data: states, and which event leads from where to where. */
import { knownOptions, optionError } from '../core/option.ts';

/** One event: allowed from any of `from`, always to `to`. */
export interface Transition<State extends string> {
  readonly from: readonly State[];
  readonly to: State;
}

/** A state machine over one table row. */
export interface FlowDeclaration<State extends string, Event extends string> {
  /** Names the machine in history rows and events. Like `order`. */
  readonly name: string;
  /** Table of the rows, for example `shop_order` or `sales.shop_order`. */
  readonly table: string;
  /** Column that identifies a row. Default `id`. */
  readonly idColumn?: string;
  /** Column that holds the state. Default `status`. */
  readonly stateColumn?: string;
  /** Integer column that grows by one with each transition; orders the history. Default `version`. */
  readonly versionColumn?: string;
  readonly states: readonly State[];
  readonly transitions: Readonly<Record<Event, Transition<State>>>;
}

/** A declaration after checking, with what can be derived from it. */
export interface FlowPlan<State extends string, Event extends string> {
  readonly name: string;
  readonly table: string;
  readonly id: string;
  readonly state: string;
  readonly version: string;
  readonly transitions: Readonly<Record<Event, Transition<State>>>;
  /** For each event: the states that say it has happened already. */
  readonly after: ReadonlyMap<Event, ReadonlySet<State>>;
}

const known = [
  'name',
  'table',
  'idColumn',
  'stateColumn',
  'versionColumn',
  'states',
  'transitions',
];
// Without a comma: lists of states travel as one text.
const stateName = /^[A-Za-z0-9_-]{1,64}$/;
const identifier = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;

/** Quotes an identifier that came from the declaration, or refuses it. */
export function quoteIdentifier(option: string, name: unknown): string {
  if (typeof name !== 'string' || !identifier.test(name)) {
    throw optionError(option, 'an identifier of letters, digits and _', name);
  }
  return `"${name}"`;
}

/** @throws OPTION_INVALID */
export function planFlow<State extends string, Event extends string>(
  declaration: FlowDeclaration<State, Event>,
): FlowPlan<State, Event> {
  knownOptions('flow', declaration, known);
  const { name, states, transitions } = declaration;
  for (const state of states) {
    if (!stateName.test(state)) throw optionError('state', 'letters, digits, _ and -', state);
  }
  if (!identifier.test(name)) throw optionError('flow name', 'letters, digits and _', name);
  const events = Object.keys(transitions) as Event[];
  for (const event of events) checkTransition(event, transitions[event], states);
  return {
    name,
    table: quoteTable(declaration.table),
    id: quoteIdentifier('idColumn', declaration.idColumn ?? 'id'),
    state: quoteIdentifier('stateColumn', declaration.stateColumn ?? 'status'),
    version: quoteIdentifier('versionColumn', declaration.versionColumn ?? 'version'),
    transitions,
    after: new Map(events.map((event) => [event, statesAfter(transitions, event)])),
  };
}

function quoteTable(table: unknown): string {
  if (typeof table !== 'string') throw optionError('table', 'a table name', table);
  return table
    .split('.')
    .map((part) => quoteIdentifier('table', part))
    .join('.');
}

function checkTransition<State extends string>(
  event: string,
  { from, to }: Transition<State>,
  states: readonly State[],
): void {
  const option = `transition "${event}"`;
  if (from.length === 0) throw optionError(option, 'allowed from at least one state', from);
  for (const state of [...from, to]) {
    if (!states.includes(state)) throw optionError(option, `between declared states`, state);
  }
  if (from.includes(to)) throw optionError(option, 'a move to another state', to);
}

/**
 * Where a row may be once the event has happened: its target and everything reachable from there,
 * except states from which the event is (still) allowed, as in a loop.
 */
function statesAfter<State extends string, Event extends string>(
  transitions: Readonly<Record<Event, Transition<State>>>,
  event: Event,
): ReadonlySet<State> {
  const { from, to } = transitions[event];
  const reached = new Set<State>([to]);
  const moves = Object.values<Transition<State>>(transitions);
  for (const state of reached) {
    for (const move of moves) if (move.from.includes(state)) reached.add(move.to);
  }
  for (const state of from) reached.delete(state);
  return reached;
}
