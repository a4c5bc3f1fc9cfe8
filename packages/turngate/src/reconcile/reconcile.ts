/** One run over one business day of one channel: resumable, once per (channel, date). */
import type { SqlDatabase } from '../contract/sql-session.ts';
import { integerOption, knownOptions, optionError } from '../core/option.ts';
import type { Rules } from './classify.ts';
import { Comparison, type Leftover, poolKey } from './compare.ts';
import { compareLines, type Line, type LinePlace, type LineSource, type Side } from './line.ts';
import { mergeSides } from './merge.ts';
import { type Claimed, ReconcileStore } from './reconcile-store.ts';
import type { Report } from './report.ts';

/** What a run needs. */
export interface ReconcileInput {
  readonly database: SqlDatabase;
  /** Names the channel (and merchant) whose bill it is. */
  readonly channel: string;
  /** Business date in the channel's zone, `YYYY-MM-DD`. */
  readonly date: string;
  /** The day's edges in epoch milliseconds, half-open. */
  readonly fromMs: number;
  readonly toMs: number;
  /**
   * Opens a side in bytewise order of kind and key, after a place when a run is resumed. The flow
   * side reads `marginMs` more than the day on both sides.
   */
  readonly open: (side: Side, after: LinePlace | undefined) => LineSource;
  /**
   * Lines this close to midnight may belong to the neighbour's bill.
   *
   * @unit milliseconds, integer, 0 to 43_200_000
   * @default 7_200_000 (two hours)
   */
  readonly marginMs?: number;
  /**
   * For how many days a line may wait for its other half before it is a break.
   *
   * @unit days, integer, 1 to 31
   * @default 3
   */
  readonly poolDays?: number;
  /**
   * After this a pending payment is reported.
   *
   * @unit milliseconds, integer, 60_000 to 2_678_400_000
   * @default 86_400_000
   */
  readonly staleAfterMs?: number;
  /** Fees may differ by this much; both limits hold. Payments and refunds are always exact. */
  readonly feeTolerance?: { readonly minor: bigint; readonly basisPoints: number };
  /** Run again although the day is done: breaks are updated, never doubled. */
  readonly again?: boolean;
}

/** `busy`: another process is at it. */
export type ReconcileResult =
  | { readonly kind: 'done'; readonly report: Report; readonly repeated: boolean }
  | { readonly kind: 'busy' };

const known = [
  'database',
  'channel',
  'date',
  'fromMs',
  'toMs',
  'open',
  'marginMs',
  'poolDays',
  'staleAfterMs',
  'feeTolerance',
  'again',
];
const keysPerCheckpoint = 50_000;

/**
 * Compares the three sides of a day. What was found is kept in `turngate_recon_*`; a crash resumes at
 * the last checkpoint, a repeat answers the report of the finished run.
 *
 * Not promised: that a break is real money lost. A break is a difference; repairs re-check the live
 * state first.
 *
 * @throws OPTION_INVALID before any I/O, BILL_INCOMPLETE from the bill side
 */
export async function reconcile(input: ReconcileInput): Promise<ReconcileResult> {
  const rules = checkInput(input);
  const store = new ReconcileStore(input.database, input.channel, input.date);
  const claimed = await store.claim(input.again === true);
  if (claimed.kind === 'busy') return { kind: 'busy' };
  if (claimed.kind === 'done') {
    return { kind: 'done', report: await store.report(), repeated: true };
  }
  try {
    await walk(input, rules, store, claimed);
  } catch (error) {
    await store.letGo(claimed.owner);
    throw error;
  }
  return { kind: 'done', report: await store.report(), repeated: false };
}

async function walk(
  input: ReconcileInput,
  rules: Omit<Rules, 'consumed'>,
  store: ReconcileStore,
  { owner, after, tally }: Extract<Claimed, { kind: 'ours' }>,
): Promise<void> {
  const pool = await store.pool();
  const consumed = await store.neighbourEdges();
  const comparison = new Comparison({ ...rules, consumed }, input.date, byKey(pool));
  for (const [code, entry] of tally) comparison.tally.set(code, entry);
  const sides = {
    order: input.open('order', after),
    flow: withPool('flow', input.open('flow', after), pool, after),
    bill: withPool('bill', input.open('bill', after), pool, after),
  };
  let keys = 0;
  for await (const groups of mergeSides(sides)) {
    for (const group of groups) comparison.take(group);
    keys += groups.length;
    const last = groups.at(-1);
    if (keys < keysPerCheckpoint || last === undefined) continue;
    keys = 0;
    await store.checkpoint(owner, comparison, { kind: last.kind, key: last.key });
  }
  await store.checkpoint(owner, comparison, undefined);
  const pooled = comparison.settleLeftovers(await store.leftovers(), recent(input));
  await store.finish(owner, comparison, pooled);
}

function checkInput(input: ReconcileInput): Omit<Rules, 'consumed'> {
  knownOptions('reconcile options', input, known);
  const { channel, date, fromMs, toMs } = input;
  if (typeof channel !== 'string' || !/^[\x21-\x7e]{1,64}$/.test(channel)) {
    throw optionError('channel', '1 to 64 visible ASCII characters', channel);
  }
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) throw optionError('date', 'YYYY-MM-DD', date);
  if (!(Number.isSafeInteger(fromMs) && Number.isSafeInteger(toMs) && fromMs < toMs)) {
    throw optionError('fromMs, toMs', 'epoch milliseconds, the first one smaller', [fromMs, toMs]);
  }
  integerOption('poolDays', input.poolDays, { min: 1, max: 31, fallback: 3 });
  return {
    fromMs,
    toMs,
    marginMs: integerOption('marginMs', input.marginMs, {
      min: 0,
      max: 43_200_000,
      fallback: 7_200_000,
    }),
    staleAfterMs: integerOption('staleAfterMs', input.staleAfterMs, {
      min: 60_000,
      max: 31 * 86_400_000,
      fallback: 86_400_000,
    }),
    feeTolerance: input.feeTolerance ?? { minor: 0n, basisPoints: 0 },
  };
}

/** Dates whose lines may still wait. */
function recent({ date, poolDays = 3 }: ReconcileInput): ReadonlySet<string> {
  const dayMs = Date.parse(`${date}T00:00:00Z`);
  const days = Array.from({ length: poolDays }, (_, i) =>
    new Date(dayMs - i * 86_400_000).toISOString().slice(0, 10),
  );
  return new Set(days);
}

function byKey(pool: readonly Leftover[]): ReadonlyMap<string, Leftover> {
  return new Map(pool.map((one) => [poolKey(one.side, one.line), one]));
}

/** A side's stream with the pooled lines in their places. */
async function* withPool(
  side: 'flow' | 'bill',
  source: LineSource,
  pool: readonly Leftover[],
  after: LinePlace | undefined,
): AsyncGenerator<readonly Line[]> {
  const waiting = pool
    .filter((one) => one.side === side)
    .map(({ line }) => line)
    .filter((line) => after === undefined || compareLines(line, after) > 0)
    .sort(compareLines);
  if (waiting.length === 0) return yield* source;
  let next = 0;
  for await (const batch of source) {
    const out: Line[] = [];
    for (const line of batch) {
      for (
        let held = waiting[next];
        held !== undefined && compareLines(held, line) <= 0;
        held = waiting[next]
      ) {
        out.push(held);
        next++;
      }
      out.push(line);
    }
    yield out;
  }
  if (next < waiting.length) yield waiting.slice(next);
}
