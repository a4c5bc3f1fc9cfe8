/** The grants of a run, read from what passed the doors of the stores. */
import type { History, Line } from './history.ts';

/** A grant of a store. */
export interface StoreGrant {
  readonly node: string;
  readonly name: string;
  readonly owner: string;
  readonly fence: bigint;
  /** When its attempt asked for the first time: it was not granted before. */
  readonly firstCallAt: number;
  /** When the process learned of it. */
  readonly knownAt: number;
  /** The store must have kept it until then: confirmed, not released, not lost by our doing. */
  readonly sureUntil: number;
}

interface Attempt {
  firstCallAt: number;
  lastTry: Line | undefined;
  granted: { line: Line; until: number } | undefined;
  renewCalls: Line[];
  releasedAt: number;
}

/** All grants of one run, by the time their processes learned of them. */
export function storeGrants(history: History, endsWithProcess: boolean): StoreGrant[] {
  const { storeLost, killed } = history.faults;
  const attempts = new Map<string, Attempt>();
  for (const line of history.lines) {
    if (line.side === 'store') take(attempts, line);
  }
  const grants = [...attempts].flatMap(([owner, attempt]): StoreGrant[] => {
    const { granted, firstCallAt, releasedAt } = attempt;
    if (granted === undefined) return [];
    const { node, name = '', fence = '0', t } = granted.line;
    const lost = storeLost.filter(({ to }) => to >= firstCallAt);
    const ends = lost.map(({ from }) => from);
    if (endsWithProcess) ends.push(killed.get(node) ?? Number.POSITIVE_INFINITY);
    const sureUntil = Math.min(granted.until, releasedAt, ...ends);
    return [{ node, name, owner, fence: BigInt(fence), firstCallAt, knownAt: t, sureUntil }];
  });
  return grants.sort((a, b) => a.knownAt - b.knownAt);
}

function take(attempts: Map<string, Attempt>, line: Line): void {
  const owner = line.owner ?? '';
  let attempt = attempts.get(owner);
  if (attempt === undefined) {
    attempt = {
      firstCallAt: line.t,
      lastTry: undefined,
      granted: undefined,
      renewCalls: [],
      releasedAt: Number.POSITIVE_INFINITY,
    };
    attempts.set(owner, attempt);
  }
  const { verb, phase, answer } = line;
  if (verb === 'try' && phase === 'call') attempt.lastTry = line;
  // Of repeated tries any may have been the one that was granted: only a first one tells the lease.
  if (verb === 'try' && answer === 'granted') {
    attempt.granted ??= { line, until: leaseEnd(attempt.lastTry) };
  }
  if (verb === 'renew' && phase === 'call') attempt.renewCalls.push(line);
  if (verb === 'renew' && phase === 'fail') attempt.renewCalls.shift();
  if (verb === 'renew' && phase === 'ok') {
    const call = attempt.renewCalls.shift();
    if (answer === 'ours' && attempt.granted !== undefined) {
      attempt.granted.until = Math.max(attempt.granted.until, leaseEnd(call));
    }
  }
  // From here on the store may have let go, answer or not.
  if (verb === 'release' && phase === 'call')
    attempt.releasedAt = Math.min(attempt.releasedAt, line.t);
}

function leaseEnd(call: Line | undefined): number {
  return call === undefined ? Number.NEGATIVE_INFINITY : call.t + (call.leaseMs ?? 0);
}
