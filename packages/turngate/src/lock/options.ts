/** Options of a lock: checked once, before any store is asked. */
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
   * How long to wait for the lock. 0 is exactly one try. Ends in BUSY.
   *
   * @unit milliseconds, integer, 0 to 86_400_000
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
   * `join` the hold (freed by the last exit), or `wait` like a stranger.
   *
   * @default 'throw'
   */
  readonly onReentry?: OnReentry;
  /** Ends the waiting with ABORTED and leaves nothing behind. Does not end a hold. */
  readonly signal?: AbortSignal;
}

/** Options after checking. */
export interface LockTiming {
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly maxHoldMs: number;
  readonly renew: boolean;
  readonly onReentry: OnReentry;
}

const day = 86_400_000;
const known = ['leaseMs', 'waitMs', 'maxHoldMs', 'renew', 'onReentry', 'signal'];

/** @throws OPTION_INVALID */
export function lockTiming(options: LockOptions): LockTiming {
  knownOptions('lock options', options, known);
  const { renew = true } = options;
  if (typeof renew !== 'boolean') throw optionError('renew', 'true or false', renew);
  return {
    // 200: below this one event-loop stall loses the lease.
    leaseMs: integerOption('leaseMs', options.leaseMs, { min: 200, max: day, fallback: 30_000 }),
    waitMs: integerOption('waitMs', options.waitMs, { min: 0, max: day, fallback: 3_000 }),
    maxHoldMs: integerOption('maxHoldMs', options.maxHoldMs, {
      min: 200,
      max: 7 * day,
      fallback: 3_600_000,
    }),
    renew,
    onReentry: wordOption('onReentry', options.onReentry, ['throw', 'join', 'wait'], 'throw'),
  };
}

const nameBytesMax = 255;
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point.
const controlCharacters = /[\u0000-\u001f\u007f]/;

/** @throws OPTION_INVALID */
export function checkLockName(name: unknown): string {
  if (typeof name !== 'string' || name.trim() === '' || controlCharacters.test(name)) {
    throw optionError('lock name', 'a string without control characters, not blank', name);
  }
  if (Buffer.byteLength(name) > nameBytesMax) {
    throw optionError('lock name', `at most ${nameBytesMax} bytes`, name);
  }
  return name;
}
