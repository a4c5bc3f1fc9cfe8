/** Options of a single flight: checked once, before any I/O. */
import {
  functionOption,
  integerOption,
  knownOptions,
  optionError,
  wordOption,
} from '../../core/option.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** What is kept in the cache: plain data, safe to write as JSON if the value is. */
export type CachedLoad<Value> =
  | {
      readonly value: Value;
      /** Wall clock of the loader's host, epoch milliseconds. */
      readonly freshUntilMs: number;
    }
  /** A remembered failure (`negativeMs`). */
  | { readonly failure: string; readonly freshUntilMs: number };

/** The caller's cache: Redis, a table, a Map. */
export interface FlightCache<Value> {
  /** Undefined when there is nothing. Rejections go to the caller of `get`. */
  get(key: string): Promise<CachedLoad<Value> | undefined>;
  /**
   * Keeps an entry for `keepMs`. `fence` grows with every loader of a key, so that a cache that
   * wants to can refuse an older loader's value. Rejections go to `onError`.
   */
  set(
    key: string,
    entry: CachedLoad<Value>,
    how: { readonly keepMs: number; readonly fence: bigint | undefined },
  ): Promise<void>;
}

/** What a load gets. */
export interface LoadContext {
  /** Aborts when the loader's lock is lost or the load takes longer than `loadMaxMs`. */
  readonly signal: AbortSignal;
  /** Undefined when the load runs without a lock. */
  readonly fence: bigint | undefined;
}

/** Options of {@link singleFlight}. */
export interface SingleFlightOptions<Value> {
  /** Prefix of the lock names, unique per kind of value. */
  readonly name: string;
  /** Brings a value from the source. What it throws goes to everybody who waits for it. */
  readonly load: (key: string, context: LoadContext) => Promise<Value>;
  readonly cache: FlightCache<Value>;
  /**
   * How long a loaded value is fresh.
   *
   * @unit milliseconds, integer, 1 to 2_592_000_000
   */
  readonly freshMs: number;
  /**
   * How long after that it is kept as stale: served while a loader works (`whileLoading: 'stale'`)
   * or when loading fails or takes too long.
   *
   * @unit milliseconds, integer, 0 to 2_592_000_000
   * @default 0
   */
  readonly staleMs?: number;
  /**
   * What callers get who find a stale value: the new one after waiting, or the stale one at once.
   *
   * @default 'wait'
   */
  readonly whileLoading?: 'wait' | 'stale';
  /** The value when there is neither a loaded nor a stale one; not kept. May throw. */
  readonly fallback?: (key: string, error: unknown) => Value | Promise<Value>;
  /**
   * How long a failure is remembered, so that not every caller tries in turn. 0: not at all.
   *
   * @unit milliseconds, integer, 0 to 600_000
   * @default 0
   */
  readonly negativeMs?: number;
  /**
   * How long a caller waits for a value.
   *
   * @unit milliseconds, integer, 0 to 600_000
   * @default 5_000
   */
  readonly waitMs?: number;
  /**
   * After a loader's crash the next one starts when this has passed.
   *
   * @unit milliseconds, integer, 200 to 600_000
   * @default 5_000
   */
  readonly leaseMs?: number;
  /**
   * Upper limit of one load; then it is given up (LOCK_LOST) and the next loader may start.
   *
   * @unit milliseconds, integer, 200 to 3_600_000
   * @default 60_000
   */
  readonly loadMaxMs?: number;
  /**
   * When the lock store cannot be reached, or gives no answer for half of `waitMs`: load anyway, once
   * per process, or fail.
   *
   * @default 'load'
   */
  readonly whenLocksFail?: 'load' | 'throw';
  /** Told about trouble nobody waits for: storing, releasing, refreshing. Default: ignored. */
  readonly onError?: (error: unknown) => void;
  /** Clocks, timers and chance for tests. @internal */
  readonly runtime?: Runtime;
}

/** Options after checking. */
export interface FlightPlan<Value>
  extends Required<Omit<SingleFlightOptions<Value>, 'fallback' | 'runtime'>> {
  readonly fallback: SingleFlightOptions<Value>['fallback'] | undefined;
}

const month = 2_592_000_000;
const known = `name load cache freshMs staleMs whileLoading fallback negativeMs waitMs leaseMs
  loadMaxMs whenLocksFail onError runtime`.split(/\s+/);

/** @throws OPTION_INVALID */
export function flightPlan<Value>(options: SingleFlightOptions<Value>): FlightPlan<Value> {
  knownOptions('singleFlight()', options, known);
  const { name, load, cache, fallback, onError = () => undefined } = options;
  if (typeof name !== 'string' || name === '') throw optionError('name', 'a prefix', name);
  functionOption('load', load);
  functionOption('cache.get', cache?.get);
  functionOption('cache.set', cache?.set);
  functionOption('onError', onError);
  if (fallback !== undefined) functionOption('fallback', fallback);
  if (options.freshMs === undefined) throw optionError('freshMs', 'given', undefined);
  const integer = (
    option: 'freshMs' | 'staleMs' | 'negativeMs' | 'waitMs' | 'leaseMs' | 'loadMaxMs',
    min: number,
    max: number,
    fallback: number,
  ): number => integerOption(option, options[option], { min, max, fallback });
  return {
    name,
    load,
    cache,
    fallback,
    onError,
    freshMs: integer('freshMs', 1, month, 1),
    staleMs: integer('staleMs', 0, month, 0),
    negativeMs: integer('negativeMs', 0, 600_000, 0),
    waitMs: integer('waitMs', 0, 600_000, 5_000),
    leaseMs: integer('leaseMs', 200, 600_000, 5_000),
    loadMaxMs: integer('loadMaxMs', 200, 3_600_000, 60_000),
    whileLoading: wordOption('whileLoading', options.whileLoading, ['wait', 'stale'], 'wait'),
    whenLocksFail: wordOption('whenLocksFail', options.whenLocksFail, ['load', 'throw'], 'load'),
  };
}
