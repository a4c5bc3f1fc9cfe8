/** Repairs: what a break allows, carried out by the caller's own idempotent actions, dry by default. */
import type { SqlDatabase } from '../contract/sql-session.ts';
import { functionOption, integerOption, knownOptions } from '../core/option.ts';
import { type Break, findingTable } from './finding.ts';
import { ReconcileStore } from './reconcile-store.ts';

/** What a repair may do. */
export type RepairName = Extract<
  (typeof findingTable)[keyof typeof findingTable],
  { repair: string }
>['repair'];

/** Re-checks the live state and acts; the key makes doing it again change nothing more. */
export type RepairAction = (found: Break, key: string) => Promise<'fixed' | 'nothing-to-do'>;

/** A repair run. */
export interface RepairOptions {
  readonly database: SqlDatabase;
  readonly channel: string;
  readonly date: string;
  /** What to do for which repair; others are only listed. */
  readonly actions: Partial<Readonly<Record<RepairName, RepairAction>>>;
  /** Only lists what would be done. @default true */
  readonly dryRun?: boolean;
  /**
   * Stops after so many repairs: a flood of breaks is a mistake to look at, not to repair.
   *
   * @unit repairs, integer, 1 to 100_000
   * @default 100
   */
  readonly countMax?: number;
  /** Stops before the repaired amounts exceed this sum, in minor units. @default 100_000_00n */
  readonly sumMinorMax?: bigint;
}

/** One line of the plan. */
export interface Repaired {
  readonly key: string;
  readonly repair: RepairName;
  readonly found: Break;
  readonly result: 'planned' | 'fixed' | 'nothing-to-do' | 'failed' | 'over-limit';
}

/**
 * Repairs the breaks of a finished run. Each action gets a key that never changes, `recon:…`, and must
 * go through an idempotent operation under it.
 *
 * @throws OPTION_INVALID, RECONCILIATION_NOT_FOUND
 */
export async function repairBreaks(options: RepairOptions): Promise<readonly Repaired[]> {
  knownOptions('repair options', options, [
    'database',
    'channel',
    'date',
    'actions',
    'dryRun',
    'countMax',
    'sumMinorMax',
  ]);
  for (const [name, action] of Object.entries(options.actions)) functionOption(name, action);
  const range = { min: 1, max: 100_000, fallback: 100 };
  let countLeft = integerOption('countMax', options.countMax, range);
  let sumLeft = options.sumMinorMax ?? 10_000_000n;
  const store = new ReconcileStore(options.database, options.channel, options.date);
  const { breaks } = await store.report();
  const done: Repaired[] = [];
  for (const found of breaks) {
    const { code, kind } = found;
    const row = findingTable[code] as { readonly repair?: RepairName };
    const action = row.repair === undefined ? undefined : options.actions[row.repair];
    if (row.repair === undefined || action === undefined) continue;
    const key = `recon:${options.channel}:${kind}:${found.key}:${code}:${row.repair}`;
    const amount = found.amountMinor < 0n ? -found.amountMinor : found.amountMinor;
    const within = countLeft > 0 && amount <= sumLeft;
    const line = { key, repair: row.repair, found };
    if (!within) done.push({ ...line, result: 'over-limit' });
    else if (options.dryRun !== false) done.push({ ...line, result: 'planned' });
    else done.push({ ...line, result: await action(found, key).catch(() => 'failed' as const) });
    if (!within) continue;
    countLeft--;
    sumLeft -= amount;
  }
  return done;
}
