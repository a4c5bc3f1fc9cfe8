/**
 * Second cancels: a try that was lost on its way may have landed after the first. Each has a key of its
 * own: a provider that remembers its answers by key would only say again that there was nothing.
 */
import type { SqlDatabase } from '../contract/sql-session.ts';
import { functionOption, integerOption, knownOptions, optionError } from '../core/option.ts';
import { sqlNowMs } from '../core/sql-text.ts';
import { emit } from '../runtime/events.ts';
import { Rounds } from '../runtime/rounds.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { branchTable as table } from './branch.ts';
import { type ExternalContext, holding } from './external-call.ts';

/** A second cancel: must succeed, and do nothing, when there is nothing to cancel (any more). */
export type SecondCancel = (context: ExternalContext) => Promise<unknown>;

/** Options of {@link ExternalBarrier.startRecancels}. */
export interface RecancelOptions {
  /**
   * Pause between two looks, jittered by a quarter.
   *
   * @unit milliseconds, integer, 50 to 3_600_000
   * @default 5_000
   */
  readonly everyMs?: number;
}

/** Second cancels that are sent as they become due. */
export interface Recancels {
  /** Sends what is due now; resolves with how many succeeded. */
  sweep(): Promise<number>;
  /** Takes up nothing more and waits for the call that is out, at most to the end of its lease. */
  stop(): Promise<void>;
}

export interface RecancelParts {
  readonly database: SqlDatabase;
  readonly runtime: Runtime;
  readonly leaseMs: number;
}

/** How many are looked up at once. */
const dueMax = 100;

/** @throws OPTION_INVALID */
export function startRecancels(
  parts: RecancelParts,
  cancels: Readonly<Record<string, SecondCancel>>,
  options: RecancelOptions,
): Recancels {
  knownOptions('startRecancels()', options, ['everyMs']);
  const range = { min: 50, max: 3_600_000, fallback: 5_000 };
  const branches = Object.entries(cancels);
  if (branches.length === 0) throw optionError('cancels', 'at least one branch', cancels);
  for (const [branch, cancel] of branches) functionOption(`cancel of ${branch}`, cancel);
  const rounds = new Rounds({
    runtime: parts.runtime,
    everyMs: integerOption('everyMs', options.everyMs, range),
    async round(stopped) {
      let done = 0;
      for (const branch of branches) done += await sweepBranch(parts, branch, stopped);
      return done;
    },
    onFailure: (error) => emit('saga', { type: 'recancel-failed', error }),
  });
  return { sweep: () => rounds.now(), stop: () => rounds.stop() };
}

/** A full look is followed by the next at once, unless some of it could not be done. */
async function sweepBranch(
  parts: RecancelParts,
  [branch, cancel]: readonly [string, SecondCancel],
  stopped: () => boolean,
): Promise<number> {
  let done = 0;
  try {
    for (let here = dueMax; here === dueMax && !stopped(); done += here) {
      here = await recancelDue(parts, branch, cancel, dueMax, stopped);
    }
  } catch (error) {
    emit('saga', { type: 'recancel-failed', branch, error });
  }
  return done;
}

/** One at a time, oldest first. A failed one is told as an event and stays due. */
export async function recancelDue(
  parts: RecancelParts,
  branch: string,
  cancel: SecondCancel,
  limit: number | undefined,
  stopped: () => boolean = () => false,
): Promise<number> {
  functionOption('cancel', cancel);
  const { database } = parts;
  const { rows } = await database.query(
    `SELECT gid, fence FROM ${table}
     WHERE recancel_ms <= ${sqlNowMs[database.dialect]} AND state = 'CANCELLED' AND branch = $1
     ORDER BY recancel_ms LIMIT ${integerOption('limit', limit, { min: 1, max: 10_000, fallback: dueMax })}`,
    [branch],
  );
  let done = 0;
  for (const row of rows) {
    if (stopped()) break;
    const due = {
      gid: String(row['gid']),
      branch,
      op: 'cancel',
      fence: Number(row['fence']),
    } as const;
    try {
      if (await recancelOne(parts, due, cancel)) done++;
    } catch (error) {
      emit('saga', { type: 'recancel-failed', branch, error });
    }
  }
  return done;
}

/** The time it is due is moved on by a lease: that is the claim, and what a crash leaves behind. */
async function recancelOne(
  { database, runtime, leaseMs }: RecancelParts,
  due: {
    readonly gid: string;
    readonly branch: string;
    readonly op: 'cancel';
    readonly fence: number;
  },
  cancel: SecondCancel,
): Promise<boolean> {
  const { gid, branch, fence } = due;
  const now = sqlNowMs[database.dialect];
  const where = `gid = $1 AND branch = $2 AND fence = $3 AND state = 'CANCELLED'`;
  const endMs = runtime.monoMs() + leaseMs;
  const claimed = await database.query(
    `UPDATE ${table} SET fence = fence + 1, recancel_ms = ${now} + ${leaseMs}
     WHERE ${where}`,
    [gid, branch, fence],
  );
  if (claimed.affectedRows === 0) return false;
  await holding(runtime, due, endMs, cancel, `cancel again ${fence + 1}`);
  // Not over a time that a late try has set meanwhile.
  await database.query(
    `UPDATE ${table} SET recancel_ms = NULL, updated_ms = ${now}
     WHERE ${where} AND recancel_ms > ${now}`,
    [gid, branch, fence + 1],
  );
  emit('saga', { type: 'cancel-again', branch });
  return true;
}
