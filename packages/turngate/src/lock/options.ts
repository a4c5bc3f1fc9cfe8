/** Options of a lock: checked once, before any store is asked. */
import type { LockShare } from '../contract/lock-store.ts';
import { integerOption, knownOptions, optionError, wordOption } from '../core/option.ts';

/** What happens when a flow asks for a lock it already holds. */
export type OnReentry = 'throw' | 'join' | 'wait';

/** Options of `gate.lock` and `gate.acquire`. */
export interface LockOptions {
  /**
   * How long the lock stays ours if this process stops renewing it. Choose it longer than the
   * longest event-loop stall and shorter than the outage users can bear: after a crash nobody gets
   * in before it has passed. It does not stop a stalled holder from writing later; only a fence
   * checked next to the data does.
   *
   * @unit milliseconds, integer, 200 to 86_400_000
   * @default 30_000
   */
  readonly leaseMs?: number;
  /**
   * How long to wait for the lock. 0 is exactly one try, `Infinity` waits without end. Ends in BUSY.
   *
   * @unit milliseconds, integer, 0 to 86_400_000, or Infinity
   * @default 3_000
   */
  readonly waitMs?: number;
  /**
   * Upper limit of one hold, renewals included; at the end the lock is lost with a typed reason.
   * Stops a holder that hangs from keeping the lock for ever.
   *
   * @unit milliseconds, integer, 200 to 604_800_000
   * @default 3_600_000
   */
  readonly maxHoldMs?: number;
  /**
   * Push the lease out while the work runs. Giving `leaseMs` does not switch it off; only `false`
   * does.
   *
   * @default true
   */
  readonly renew?: boolean;
  /**
   * When this flow already holds the lock through `gate.lock(name, body)`: `throw` LOCK_REENTERED,
   * `join` the hold (freed by the last exit), or `wait` like a stranger. Joining gives what is held:
   * a read inside a write joins the write; a write inside a read is never joined, it throws, since
   * two readers who both wait to write would wait for ever.
   *
   * @default 'throw'
   */
  readonly onReentry?: OnReentry;
  /** Ends the waiting with ABORTED and leaves nothing behind. Does not end a hold. */
  readonly signal?: AbortSignal;
  /**
   * Read/write lock: any number of readers, or one writer; a writer that waits goes before readers
   * that come later. Use a name either with `mode`, with `permits` or with neither, never mixed.
   */
  readonly mode?: 'read' | 'write';
  /** Semaphore: at most `limit` permits of this name are out at a time, each with a lease. */
  readonly permits?: LockPermits;
  /**
   * May the lock go from one waiter of this process to the next without asking the store? It saves a
   * round trip per turn; other processes wait for at most `turns` turns and `ms` milliseconds more.
   * Used only where the store can reserve fences, so that fences keep growing. `false`: every grant
   * is a write of the store. Never used for `mode` and `permits`.
   *
   * @default { turns: 8, ms: 10 }
   */
  readonly handOver?: boolean | LockHandOver;
  /**
   * `false` lets this process keep the lock for longer while it has waiters of its own (64 turns,
   * 100 ms): more throughput, longer waits elsewhere. Order inside the process stays first come
   * first served.
   *
   * @default true
   */
  readonly fair?: boolean;
}

/** How many permits of a semaphore to take. */
export interface LockPermits {
  /**
   * Permits the semaphore has. Whoever asks says so: use the same number everywhere.
   *
   * @unit permits, integer, 1 to 1_000_000
   */
  readonly limit: number;
  /**
   * Permits to take, all at once or none.
   *
   * @unit permits, integer, 1 to `limit`
   * @default 1
   */
  readonly take?: number;
}

/** Bounds of handing a lock over inside a process. */
export interface LockHandOver {
  /**
   * @unit hand-overs, integer, 0 to 1_000
   * @default 8
   */
  readonly turns?: number;
  /**
   * Nothing is handed over later than this after the store's grant.
   *
   * @unit milliseconds, integer, 0 to 60_000
   * @default 10
   */
  readonly ms?: number;
}

/** Options after checking. */
export interface LockTiming {
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly maxHoldMs: number;
  readonly renew: boolean;
  readonly onReentry: OnReentry;
  readonly share: LockShare | undefined;
  readonly handOverTurns: number;
  readonly handOverMs: number;
}

const day = 86_400_000;
const readersMax = 1_000_000;
const known = [
  'leaseMs',
  'waitMs',
  'maxHoldMs',
  'renew',
  'onReentry',
  'signal',
  'mode',
  'permits',
  'handOver',
  'fair',
];
const readShare: LockShare = { take: 1, limit: readersMax };
const writeShare: LockShare = { take: readersMax, limit: readersMax, urgent: true };

/** @throws OPTION_INVALID */
export function lockTiming(options: LockOptions | undefined): LockTiming {
  return options === undefined ? defaultTiming : checkTiming(options);
}

function checkTiming(options: LockOptions): LockTiming {
  knownOptions('lock options', options, known);
  const { renew = true, fair = true } = options;
  if (typeof renew !== 'boolean') throw optionError('renew', 'true or false', renew);
  if (typeof fair !== 'boolean') throw optionError('fair', 'true or false', fair);
  const share = shareOf(options);
  const [handOverTurns, handOverMs] = share === undefined ? handOver(options.handOver, fair) : none;
  return {
    // 200: below this one event-loop stall loses the lease.
    leaseMs: integerOption('leaseMs', options.leaseMs, { min: 200, max: day, fallback: 30_000 }),
    waitMs: waitMsOption(options.waitMs),
    maxHoldMs: integerOption('maxHoldMs', options.maxHoldMs, {
      min: 200,
      max: 7 * day,
      fallback: 3_600_000,
    }),
    renew,
    onReentry: wordOption('onReentry', options.onReentry, ['throw', 'join', 'wait'], 'throw'),
    share,
    handOverTurns,
    handOverMs,
  };
}

const none = [0, 0] as const;

function waitMsOption(waitMs: number | undefined): number {
  if (waitMs === Number.POSITIVE_INFINITY) return waitMs;
  return integerOption('waitMs', waitMs, { min: 0, max: day, fallback: 3_000 });
}

function shareOf({ mode, permits }: LockOptions): LockShare | undefined {
  if (mode !== undefined && permits !== undefined) {
    throw optionError('permits', 'left out where mode is given', permits);
  }
  if (mode !== undefined) {
    return wordOption('mode', mode, ['read', 'write'], 'read') === 'read' ? readShare : writeShare;
  }
  if (permits === undefined) return undefined;
  if (typeof permits !== 'object' || permits === null) {
    throw optionError('permits', 'an object with limit and take', permits);
  }
  knownOptions('permits', permits, ['take', 'limit']);
  const { limit } = permits;
  if (limit === undefined) throw optionError('permits.limit', 'given', limit);
  integerOption('permits.limit', limit, { min: 1, max: readersMax, fallback: 1 });
  const take = integerOption('permits.take', permits.take, { min: 1, max: limit, fallback: 1 });
  return { take, limit };
}

function handOver(
  given: boolean | LockHandOver | undefined,
  fair: boolean,
): readonly [turns: number, ms: number] {
  if (given === false) return none;
  const fallback = fair ? { turns: 8, ms: 10 } : { turns: 64, ms: 100 };
  if (given === undefined || given === true) return [fallback.turns, fallback.ms];
  if (typeof given !== 'object' || given === null) {
    throw optionError('handOver', 'true, false or an object with turns and ms', given);
  }
  knownOptions('handOver', given, ['turns', 'ms']);
  return [
    integerOption('handOver.turns', given.turns, { min: 0, max: 1_000, fallback: fallback.turns }),
    integerOption('handOver.ms', given.ms, { min: 0, max: 60_000, fallback: fallback.ms }),
  ];
}

const defaultTiming = checkTiming({});

const nameBytesMax = 255;
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point.
const controlCharacters = /[\u0000-\u001f\u007f]/;

/** @throws OPTION_INVALID */
export function checkLockName(name: unknown): string {
  if (typeof name !== 'string' || name.trim() === '' || controlCharacters.test(name)) {
    throw optionError('lock name', 'a string without control characters, not blank', name);
  }
  // Three bytes at most for each UTF-16 unit: short names need no counting.
  if (name.length * 3 > nameBytesMax && Buffer.byteLength(name) > nameBytesMax) {
    throw optionError('lock name', `at most ${nameBytesMax} bytes`, name);
  }
  return name;
}
