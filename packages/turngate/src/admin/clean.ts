/** Clean-up as a job: small batches with pauses between them, so that traffic does not feel it. */
import { integerOption, knownOptions, optionError } from '../core/option.ts';
import { checkOperationName } from '../core/record-id.ts';
import { type Runtime, systemRuntime } from '../runtime/runtime.ts';
import { sleep } from '../runtime/wait.ts';
import type { AdminRecordStore, AdminStagedStore } from './stores.ts';

/** Results that are dropped while their keys stay. */
export interface ResultRetention {
  readonly operation: string;
  /**
   * How long a result is kept, counted from when the work was done. Shorter than the operation's
   * `retentionMs`, which says how long the key is known.
   *
   * @unit milliseconds, integer, 1_000 to 3_650 days
   */
  readonly resultRetentionMs: number;
}

/** Options of {@link cleanUp}. */
export interface CleanUpOptions {
  readonly records?: AdminRecordStore;
  readonly staged?: AdminStagedStore;
  /** Operations whose results go before their keys. Needs `records`. */
  readonly results?: readonly ResultRetention[];
  /**
   * What a batch deletes is felt for as long as it takes; on MySQL and MariaDB, where rows lie in random
   * order, ten times as long as on PostgreSQL.
   *
   * @unit rows of one transaction, integer, 1 to 10_000
   * @default 100
   */
  readonly batchRows?: number;
  /**
   * Pause after each batch. Doubled pauses halve the load and double the time.
   *
   * @unit milliseconds, integer, 0 to 60_000
   * @default 20
   */
  readonly pauseMs?: number;
  /**
   * Most batches of one run; what is left waits for the next run.
   *
   * @unit batches, integer, 1 to 1_000_000
   * @default 50_000
   */
  readonly batchesMax?: number;
  /** Ends the run after the batch at hand. */
  readonly signal?: AbortSignal;
  /** Clocks for tests. @internal */
  readonly runtime?: Runtime;
}

/** What a run did. */
export interface CleanUpReport {
  readonly records: number;
  readonly staged: number;
  readonly results: number;
  /** False: stopped by `batchesMax` or the signal before all was done. */
  readonly finished: boolean;
}

/**
 * Deletes what has expired and drops results that are kept shorter than their keys, until nothing is
 * left. One run per day or hour is enough; make it a job, so that one node does it. Two at once do no
 * harm: they pass over each other's rows.
 *
 * @throws OPTION_INVALID before any I/O; STORE_UNAVAILABLE, and what was done until then stays done
 */
export async function cleanUp(options: CleanUpOptions): Promise<CleanUpReport> {
  const { records, staged, results, batchRows, pauseMs, batchesMax, signal, runtime } =
    checked(options);
  const done = { records: 0, staged: 0, results: 0 };
  let batches = 0;
  const mayGoOn = (): boolean => batches < batchesMax && signal?.aborted !== true;
  /** Runs one step until it says that it was the last. */
  const until = async (step: () => Promise<'more' | 'last'>): Promise<boolean> => {
    for (;;) {
      if (!mayGoOn()) return false;
      batches++;
      if ((await step()) === 'last') return true;
      if (pauseMs > 0 && mayGoOn()) await sleep(runtime, pauseMs);
    }
  };
  const purge = async (kind: 'records' | 'staged'): Promise<boolean> => {
    const store = kind === 'records' ? records : staged;
    if (store === undefined) return true;
    return await until(async () => {
      const went = await store.purge({ batchRows, batches: 1 });
      done[kind] += went;
      return went === 0 ? 'last' : 'more';
    });
  };
  let finished = (await purge('records')) && (await purge('staged'));
  for (const { operation, resultRetentionMs: olderThanMs } of results) {
    let after: string | undefined;
    finished &&= await until(async () => {
      const batch = { operation, olderThanMs, batchRows, ...(after !== undefined && { after }) };
      const answer = await records?.admin?.dropResults(batch);
      done.results += answer?.dropped ?? 0;
      after = answer?.cursor;
      return after === undefined ? 'last' : 'more';
    });
  }
  return { ...done, finished };
}

const dayMs = 86_400_000;

function checked(options: CleanUpOptions) {
  const known = ['records', 'staged', 'results', 'batchRows', 'pauseMs', 'batchesMax', 'signal'];
  knownOptions('cleanUp()', options, [...known, 'runtime']);
  const { records, staged, results = [], signal, runtime = systemRuntime } = options;
  if (results.length > 0 && records?.admin === undefined) {
    throw optionError('records', 'a store that can drop results', records?.name);
  }
  for (const { operation, resultRetentionMs } of results) {
    checkOperationName(operation);
    const range = { min: 1_000, max: 3_650 * dayMs, fallback: 0 };
    integerOption('resultRetentionMs', resultRetentionMs, range);
  }
  const { batchRows, pauseMs, batchesMax } = options;
  return {
    records,
    staged,
    results,
    signal,
    runtime,
    batchRows: integerOption('batchRows', batchRows, { min: 1, max: 10_000, fallback: 100 }),
    pauseMs: integerOption('pauseMs', pauseMs, { min: 0, max: 60_000, fallback: 20 }),
    batchesMax: integerOption('batchesMax', batchesMax, {
      min: 1,
      max: 1_000_000,
      fallback: 50_000,
    }),
  };
}
