/**
 * The laws of a chaos run. Each takes the history and names what broke; nothing is asked of the
 * library here, so that it cannot hide its own mistakes.
 */
import { type StoreGrant, storeGrants } from './grants.ts';
import type { Effect, History, Line } from './history.ts';

/** What a run promises; the rest always holds. */
export interface Promises {
  /** Grants carry fences. */
  readonly fences: boolean;
  /**
   * The unprotected counter loses nothing: no holder is frozen, and the store forgets nothing while
   * somebody holds.
   */
  readonly exclusion: boolean;
  /** A grant ends on the server with its process (a session), not only with its lease. */
  readonly endsWithProcess?: boolean;
}

/** How late a waiter may be told: a busy machine, not the library, uses most of it. */
const waiterSlackMs = 1_000;

/** Servers count whole milliseconds. */
const clockGrainMs = 5;

/** Everything that broke; empty when all laws held. */
export function broken(history: History, promises: Promises): string[] {
  const grants = storeGrants(history, promises.endsWithProcess === true);
  return [
    ...processLaws(history),
    ...waiterLaws(history),
    ...exclusionLaw(grants),
    ...(promises.fences ? [...fenceLaws(grants, history), ...effectLaws(history.fenced)] : []),
    ...(promises.exclusion ? lostUpdates('unprotected counter', history.raw) : []),
  ];
}

/** Nobody leaves a rejection unhandled. */
function processLaws({ lines }: History): string[] {
  return lines
    .filter(({ verb }) => verb === 'unhandled' || verb === 'uncaught')
    .map(({ node, verb, code }) => `${node}: ${verb} ${code}`);
}

/** A waiter is granted, times out or is aborted by its own deadline. */
function waiterLaws({ lines, faults }: History): string[] {
  const calls = new Map<string, Line>();
  const late: string[] = [];
  for (const line of lines) {
    if (line.side !== 'client' || line.verb !== 'acquire' || line.id === undefined) continue;
    if (line.phase === 'call') {
      calls.set(line.id, line);
      continue;
    }
    const call = calls.get(line.id);
    calls.delete(line.id);
    const waited = line.t - (call?.t ?? 0) - frozenFor(faults.frozen, call, line);
    const limit = (call?.waitMs ?? 0) + waiterSlackMs;
    if (waited > limit) late.push(`${line.id}: waited ${Math.round(waited)} ms of ${limit}`);
  }
  const stuck = [...calls.values()].filter(({ node }) => !faults.killed.has(node));
  return [...late, ...stuck.map(({ id }) => `${id}: neither granted nor refused`)];
}

function frozenFor(frozen: History['faults']['frozen'], call: Line | undefined, end: Line): number {
  const own = frozen.filter(({ node, to }) => node === end.node && to > (call?.t ?? 0));
  return own.reduce((sum, { from, to }) => sum + (to - from), 0);
}

/** In the store's own time at most one grant of a name lives. */
function exclusionLaw(grants: readonly StoreGrant[]): string[] {
  const last = new Map<string, StoreGrant>();
  const overlaps: string[] = [];
  for (const grant of grants) {
    // What a process learns after its end (it was frozen, the answer was late) says nothing.
    if (grant.knownAt >= grant.sureUntil) continue;
    const before = last.get(grant.name);
    if (before !== undefined && before.sureUntil - clockGrainMs > grant.knownAt) {
      const ms = Math.round(before.sureUntil - grant.knownAt);
      overlaps.push(`${grant.name}: ${show(before)} and ${show(grant)} both held for ${ms} ms`);
    }
    if (before === undefined || grant.sureUntil > before.sureUntil) last.set(grant.name, grant);
  }
  return overlaps;
}

/** Fences never repeat, and grow in the order of the grants. */
function fenceLaws(grants: readonly StoreGrant[], { lines }: History): string[] {
  const wrong: string[] = [];
  const seen = new Map<string, string>();
  for (const { name, owner, fence } of grants) {
    const key = `${name} ${fence}`;
    if (seen.has(key)) wrong.push(`${name}: fence ${fence} went to ${seen.get(key)} and ${owner}`);
    seen.set(key, owner);
  }
  const turns = new Map<string, string>();
  for (const { side, verb, phase, name, id = '', fence } of lines) {
    if (side !== 'client' || verb !== 'acquire' || phase !== 'ok') continue;
    const key = `${name} ${fence}`;
    if (turns.has(key)) wrong.push(`${name}: ${turns.get(key)} and ${id} both had fence ${fence}`);
    turns.set(key, id);
  }
  for (const name of new Set(grants.map((grant) => grant.name))) {
    const own = grants.filter((grant) => grant.name === name);
    wrong.push(...growth(own.filter((grant) => grant.knownAt < grant.sureUntil)));
    wrong.push(...growthInRealTime(own));
  }
  return wrong;
}

/** Of two grants that both lived when they became known, the later known one is the younger. */
function growth(grants: readonly StoreGrant[]): string[] {
  return grants.flatMap((grant, i) => {
    const before = grants[i - 1];
    if (before === undefined || before.fence < grant.fence) return [];
    return [`${grant.name}: ${show(before)}, then ${show(grant)}`];
  });
}

/** Whoever asked after another was granted got a greater fence, whatever happened in between. */
function growthInRealTime(grants: readonly StoreGrant[]): string[] {
  const byCall = [...grants].sort((a, b) => a.firstCallAt - b.firstCallAt);
  const wrong: string[] = [];
  let known = 0;
  let highest: StoreGrant | undefined;
  for (const grant of byCall) {
    for (; (grants[known]?.knownAt ?? Number.POSITIVE_INFINITY) < grant.firstCallAt; known++) {
      const next = grants[known] as StoreGrant;
      if (highest === undefined || next.fence > highest.fence) highest = next;
    }
    if (highest !== undefined && highest.fence >= grant.fence) {
      wrong.push(`${grant.name}: ${show(highest)} was known before ${show(grant)} asked`);
    }
  }
  return wrong;
}

/** Accepted writes carry growing fences, and each has seen the one before. */
function effectLaws(effects: History['fenced']): string[] {
  const disorder = [...effects].flatMap(([name, writes]) =>
    writes.flatMap((write, i) => {
      const before = writes[i - 1];
      if (before === undefined || BigInt(before.fence) < BigInt(write.fence)) return [];
      return [
        `${name}: wrote ${before.id} (fence ${before.fence}), then ${write.id} (${write.fence})`,
      ];
    }),
  );
  return [...disorder, ...lostUpdates('fenced counter', effects)];
}

/** Every write counted on from the one before. */
function lostUpdates(what: string, effects: ReadonlyMap<string, readonly Effect[]>): string[] {
  return [...effects].flatMap(([name, writes]) =>
    writes.flatMap(({ n, id }, i) =>
      n === i + 1 ? [] : [`${what} of ${name}: write ${i + 1} by ${id} counted ${n}`],
    ),
  );
}

function show({ owner, node, fence }: StoreGrant): string {
  return `${owner.slice(0, 12)} of ${node} (fence ${fence})`;
}
