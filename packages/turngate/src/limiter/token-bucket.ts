/** Token buckets: how many may start per time, over all processes. */
import { integerOption, knownOptions, optionError } from '../core/option.ts';

/** One request for tokens. */
export interface TakeOptions {
  /**
   * How many to take, all or none.
   *
   * @unit tokens, integer, 1 to `capacity`
   * @default 1
   */
  readonly tokens?: number;
  /**
   * How many an idle bucket holds: the largest burst.
   *
   * @unit tokens, integer, 1 to 1_000_000
   */
  readonly capacity: number;
  /**
   * How many come back.
   *
   * @unit tokens per second, 0.001 to 1_000_000, at most three decimals
   */
  readonly refillPerSecond: number;
}

/** The answer. */
export interface TakeAnswer {
  readonly allowed: boolean;
  /** Whole tokens left. */
  readonly remaining: number;
  /** 0 when allowed; otherwise when there will be enough, if nobody else takes before. */
  readonly retryAfterMs: number;
}

/**
 * Buckets by key.
 *
 * Promised: over any time measured by the store's clock, no more is granted for a key than `capacity`
 * plus `refillPerSecond` times that time, whatever the clocks of the callers say.
 *
 * Not promised: fairness. Whoever asks when there is enough gets it; a request for many tokens can
 * starve behind requests for few. A rejected call may have taken its tokens.
 */
export interface TokenBuckets {
  /** @throws OPTION_INVALID before any I/O */
  take(key: string, options: TakeOptions): Promise<TakeAnswer>;
}

/**
 * Checked options in whole numbers: amounts in nano-tokens, the rate in nano-tokens per microsecond
 * (thousandths of a token per second). Every product stays below 2^53, so doubles are exact.
 */
export interface TakePlan {
  readonly takeNano: number;
  readonly capacityNano: number;
  readonly rate: number;
}

const nano = 1_000_000_000;

/** @throws OPTION_INVALID */
export function takePlan(key: unknown, options: TakeOptions): TakePlan {
  knownOptions('take()', options, ['tokens', 'capacity', 'refillPerSecond']);
  if (typeof key !== 'string' || key === '' || Buffer.byteLength(key) > 255) {
    throw optionError('key', 'a string of 1 to 255 bytes', key);
  }
  const { refillPerSecond } = options;
  if (options.capacity === undefined) throw optionError('capacity', 'given', undefined);
  const capacity = integerOption('capacity', options.capacity, {
    min: 1,
    max: 1_000_000,
    fallback: 1,
  });
  const tokens = integerOption('tokens', options.tokens, { min: 1, max: capacity, fallback: 1 });
  const rate = Math.round(refillPerSecond * 1_000);
  if (!(rate >= 1 && rate <= nano) || Math.abs(rate - refillPerSecond * 1_000) > 1e-6) {
    throw optionError('refillPerSecond', 'from 0.001 to 1000000, in thousandths', refillPerSecond);
  }
  return { takeNano: tokens * nano, capacityNano: capacity * nano, rate };
}

/** What a bucket holds now, given what it held at a time and the time now, both in microseconds. */
export function refilled(
  plan: TakePlan,
  held: { readonly amountNano: number; readonly atMicros: number },
  nowMicros: number,
): number {
  const { capacityNano, rate } = plan;
  const elapsed = Math.max(0, nowMicros - held.atMicros);
  const missing = capacityNano - held.amountNano;
  if (missing <= 0 || elapsed >= Math.ceil(missing / rate)) return capacityNano;
  return held.amountNano + elapsed * rate;
}

/** The answer for a bucket that holds this much after the take, or lacks something for it. */
export function takeAnswer(allowed: boolean, amountNano: number, plan: TakePlan): TakeAnswer {
  const missingNano = allowed ? 0 : plan.takeNano - amountNano;
  return {
    allowed,
    remaining: Math.floor(amountNano / nano),
    retryAfterMs: Math.ceil(missingNano / plan.rate / 1_000),
  };
}
