/** Walks the sides once and keeps what was found: counts, breaks, and lines that wait for their half. */
import { classify, type Finding, type Rules } from './classify.ts';
import { type Break, type FindingCode, severityOf } from './finding.ts';
import type { Group, Line, LinePlace } from './line.ts';

/** A line that was left without its other half. */
export interface Leftover {
  readonly side: 'flow' | 'bill';
  readonly line: Line;
  /** What it is if nothing turns up. */
  readonly code: FindingCode;
  /** The business date of the run that first left it. */
  readonly sinceDate: string;
}

/** Counts and sums by code; sums in minor units, per currency. */
export type Tally = Map<FindingCode, { count: number; readonly sums: Map<string, bigint> }>;

/** What a stretch of the walk found. */
export interface Stretch {
  readonly breaks: Break[];
  readonly leftovers: Leftover[];
  /** Keys matched close to the day's edges: the neighbour's run must not use them again. */
  readonly edgeKeys: string[];
  /** Pooled lines of earlier runs that found their half. */
  readonly settled: LinePlace[];
}

/** Takes groups one after the other. */
export class Comparison {
  readonly tally: Tally = new Map();
  stretch: Stretch = emptyStretch();
  private readonly rules: Rules;
  private readonly date: string;
  private readonly pool: ReadonlyMap<string, Leftover>;

  /** @param pool lines that earlier runs left, by side, kind, key and ref */
  constructor(rules: Rules, date: string, pool: ReadonlyMap<string, Leftover>) {
    this.rules = rules;
    this.date = date;
    this.pool = pool;
  }

  take(given: Group): void {
    const group = given.flow.length > 1 || given.bill.length > 1 ? withoutDoubles(given) : given;
    const found = classify(group, this.rules);
    if (found === undefined) this.keepPooled(group);
    else if (found.alone !== undefined) this.leave(found, found.alone);
    else if (isMatch(found.code)) this.match(group, found);
    else this.report(group, found);
  }

  /** Ends a stretch: its facts are safe, the next one begins. */
  nextStretch(): Stretch {
    const done = this.stretch;
    this.stretch = emptyStretch();
    return done;
  }

  /** What is left at the end meets once more by its second key; the rest is pooled or broken. */
  settleLeftovers(
    leftovers: readonly Leftover[],
    keepDates: ReadonlySet<string>,
  ): readonly Leftover[] {
    const byAlt = new Map<string, Leftover>();
    for (const one of leftovers) {
      const { alt } = one.line;
      if (one.side === 'flow' && alt !== undefined) byAlt.set(`${one.line.kind}\n${alt}`, one);
    }
    const used = new Set<Leftover>();
    for (const one of leftovers) {
      if (one.side !== 'bill') continue;
      const { kind, alt, key } = one.line;
      const half = byAlt.get(`${kind}\n${alt ?? key}`);
      if (half === undefined || used.has(half) || !isEqual(half.line, one.line)) continue;
      used.add(half).add(one);
      this.count('MATCHED', one.line.currency, one.line.amountMinor);
    }
    const pooled: Leftover[] = [];
    for (const one of leftovers) {
      if (used.has(one)) continue;
      if (one.code === 'POOLED_CUTOFF' && keepDates.has(one.sinceDate)) {
        this.count('POOLED_CUTOFF', one.line.currency, one.line.amountMinor);
        pooled.push(one);
      } else
        this.breakOf(one.line, finalCode(one), one.line.amountMinor, 'no other half was found');
    }
    return pooled;
  }

  /** Yesterday's line is not of this day, but still waits for its half. */
  private keepPooled({ flow }: Group): void {
    const [line] = flow;
    const known = line && this.pool.get(poolKey('flow', line));
    if (known !== undefined) this.stretch.leftovers.push(known);
  }

  private leave({ code }: Finding, { side, line }: NonNullable<Finding['alone']>): void {
    const known = this.pool.get(poolKey(side, line));
    this.stretch.leftovers.push({ side, line, code, sinceDate: known?.sinceDate ?? this.date });
  }

  private match(group: Group, { code, amountMinor }: Finding): void {
    const line = (group.bill[0] ?? group.flow[0]) as Line;
    this.count(code, line.currency, amountMinor);
    const { fromMs, toMs, marginMs } = this.rules;
    const edge = [...group.flow, ...group.bill].some(
      ({ atMs }) => atMs < fromMs + marginMs || atMs >= toMs - marginMs,
    );
    if (edge) this.stretch.edgeKeys.push(`${group.kind}\n${group.key}`);
    if (this.pool.size > 0) this.stretch.settled.push({ kind: group.kind, key: group.key });
  }

  private report(group: Group, { code, amountMinor, detail }: Finding): void {
    const line = (group.bill[0] ?? group.flow[0] ?? group.order[0]) as Line;
    this.breakOf(line, code, amountMinor, detail);
  }

  private breakOf(line: Line, code: FindingCode, amountMinor: bigint, detail: string): void {
    const { kind, key, currency } = line;
    this.count(code, currency, amountMinor);
    this.stretch.breaks.push({
      code,
      severity: severityOf(code),
      kind,
      key,
      amountMinor,
      currency,
      detail,
    });
  }

  private count(code: FindingCode, currency: string, amountMinor: bigint): void {
    let entry = this.tally.get(code);
    if (entry === undefined) {
      entry = { count: 0, sums: new Map() };
      this.tally.set(code, entry);
    }
    entry.count++;
    entry.sums.set(currency, (entry.sums.get(currency) ?? 0n) + amountMinor);
  }
}

/** Names a pooled line. */
export function poolKey(side: string, { kind, key, ref }: Line): string {
  return [side, kind, key, ref].join('\n');
}

function emptyStretch(): Stretch {
  return { breaks: [], leftovers: [], edgeKeys: [], settled: [] };
}

function isMatch(code: FindingCode): boolean {
  return code === 'MATCHED' || code === 'MATCHED_TOLERANCE';
}

function isEqual(a: Line, b: Line): boolean {
  return a.amountMinor === b.amountMinor && a.currency === b.currency;
}

function finalCode({ side, code, line }: Leftover): FindingCode {
  if (code !== 'POOLED_CUTOFF') return code;
  if (line.kind === 'REFUND')
    return side === 'flow' ? 'REFUND_MISSING_CHANNEL' : 'REFUND_MISSING_LOCAL';
  return side === 'flow' ? 'MISSING_CHANNEL' : 'MISSING_LOCAL';
}

/** The pool and the day's own stream may both bring a line: it counts once. */
function withoutDoubles(group: Group): Group {
  return { ...group, flow: once(group.flow), bill: once(group.bill) };
}

function once(lines: readonly Line[]): readonly Line[] {
  const seen = new Set<string>();
  return lines.filter(({ ref }) => !seen.has(ref) && seen.add(ref));
}
