/** One load per key for everybody who misses the cache at the same time, over all processes. */
import { isTurngateError, TurngateError } from '../../core/errors.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import { waitFor } from '../../runtime/wait.ts';
import { checkLockName } from '../options.ts';
import type { HeldLock, LockSource } from './lock-source.ts';
import {
  type CachedLoad,
  type FlightPlan,
  flightPlan,
  type LoadContext,
  type SingleFlightOptions,
} from './single-flight-options.ts';

/** A cache that loads each missing value once. */
export interface SingleFlight<Value> {
  /**
   * The fresh value from the cache, or the one a single loader brings; then, in this order: the
   * stale value, the fallback, the error.
   *
   * @throws BUSY when others load for longer than `waitMs`
   * @throws LOAD_FAILED when a failure is remembered (`negativeMs`)
   * @throws ABORTED by the caller's signal
   */
  get(key: string, options?: { readonly signal?: AbortSignal }): Promise<Value>;
  /**
   * Call it after you have changed the source and removed the key from the cache: a load that runs in
   * this process keeps nothing, and later callers do not join it. Loads of other processes go on.
   */
  forget(key: string): void;
}

/**
 * Protects what is behind a cache from many misses at once. Callers of one process share one flight;
 * flights of all processes take one lock; who gets it looks into the cache again before loading.
 *
 * Not promised: that a value is loaded only once. A loader that loses its lock (crash, stall longer
 * than the lease) is followed by the next one. Use an operation where once is a matter of
 * correctness.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function singleFlight<Value>(
  locks: LockSource,
  options: SingleFlightOptions<Value>,
): SingleFlight<Value> {
  return new Flights(locks, flightPlan(options), options.runtime ?? systemRuntime);
}

interface Flight<Value> {
  readonly landed: Promise<CachedLoad<Value>>;
  /** The source has changed since: what this flight brings must not stay in the cache. */
  forgotten: boolean;
}

class Flights<Value> implements SingleFlight<Value> {
  private readonly locks: LockSource;
  private readonly plan: FlightPlan<Value>;
  private readonly runtime: Runtime;
  private readonly flights = new Map<string, Flight<Value>>();

  constructor(locks: LockSource, plan: FlightPlan<Value>, runtime: Runtime) {
    this.locks = locks;
    this.plan = plan;
    this.runtime = runtime;
  }

  async get(key: string, options: { readonly signal?: AbortSignal } = {}): Promise<Value> {
    checkLockName(this.lockName(key));
    const endMonoMs = this.runtime.monoMs() + this.plan.waitMs;
    const cached = await this.plan.cache.get(key);
    if (cached !== undefined && this.isFresh(cached)) return this.open(cached);
    const stale = cached !== undefined && 'value' in cached ? cached : undefined;
    if (stale !== undefined && this.plan.whileLoading === 'stale') {
      this.refresh(key);
      return stale.value;
    }
    try {
      return this.open(await this.wait(key, endMonoMs, options.signal));
    } catch (error) {
      if (isTurngateError(error, 'ABORTED')) throw error;
      if (stale !== undefined) return stale.value;
      if (this.plan.fallback !== undefined) return await this.plan.fallback(key, error);
      throw error;
    }
  }

  forget(key: string): void {
    const flight = this.flights.get(key);
    if (flight !== undefined) flight.forgotten = true;
    this.flights.delete(key);
  }

  /** Joins flights until one ends well or the caller's own time is up. */
  private async wait(
    key: string,
    endMonoMs: number,
    signal: AbortSignal | undefined,
  ): Promise<CachedLoad<Value>> {
    const cut = (): TurngateError =>
      signal?.aborted
        ? new TurngateError('ABORTED', 'the caller aborted while waiting', { cause: signal.reason })
        : new TurngateError('BUSY', `"${key}" is still being loaded`);
    for (;;) {
      const leftMs = Math.max(0, Math.ceil(endMonoMs - this.runtime.monoMs()));
      const flight = this.flight(key, leftMs);
      try {
        return await waitFor(this.runtime, flight, { limitMs: leftMs, onCut: cut, signal });
      } catch (error) {
        // A flight that began before us, and with less patience, is not our answer.
        if (!isTurngateError(error, 'BUSY') || this.runtime.monoMs() >= endMonoMs) throw error;
      }
    }
  }

  /** One try in the background: if somebody loads already, its value will be there for the next. */
  private refresh(key: string): void {
    this.flight(key, 0).catch((error: unknown) => {
      if (!isTurngateError(error, 'BUSY')) this.report(error);
    });
  }

  private flight(key: string, waitMs: number): Promise<CachedLoad<Value>> {
    const running = this.flights.get(key);
    if (running !== undefined) return running.landed;
    const flight = { forgotten: false } as {
      -readonly [Part in keyof Flight<Value>]: Flight<Value>[Part];
    };
    flight.landed = this.fly(key, waitMs, () => !flight.forgotten).finally(() => {
      if (this.flights.get(key) === flight) this.flights.delete(key);
    });
    this.flights.set(key, flight);
    return flight.landed;
  }

  private async fly(
    key: string,
    waitMs: number,
    isCurrent: () => boolean,
  ): Promise<CachedLoad<Value>> {
    const endMonoMs = this.runtime.monoMs() + waitMs;
    for (;;) {
      const leftMs = Math.max(0, Math.ceil(endMonoMs - this.runtime.monoMs()));
      let lock: HeldLock;
      try {
        lock = await this.takeLock(key, Math.min(leftMs, this.sliceMs));
      } catch (error) {
        if (isTurngateError(error, 'STORE_UNAVAILABLE') && this.plan.whenLocksFail === 'load') {
          this.report(error);
          return await this.loadWithoutLock(key, isCurrent);
        }
        if (!isTurngateError(error, 'BUSY') || leftMs <= this.sliceMs) throw error;
        const found = await this.plan.cache.get(key);
        if (found !== undefined && this.isFresh(found)) return found;
        continue;
      }
      return await this.flyUnder(lock, key, isCurrent);
    }
  }

  /**
   * The wait for the lock is cut in two: a lock store that is down is noticed while callers still have
   * the time to wait for a load without it. Not earlier: a slow answer is not an outage.
   */
  private get sliceMs(): number {
    return Math.max(1, Math.ceil(this.plan.waitMs / 2));
  }

  private takeLock(key: string, waitMs: number): Promise<HeldLock> {
    const { leaseMs, loadMaxMs } = this.plan;
    // 'wait': a caller that holds this name for its own reasons is a stranger to the flight.
    const options = { leaseMs, waitMs, maxHoldMs: loadMaxMs, onReentry: 'wait' } as const;
    return this.locks.acquire(this.lockName(key), options);
  }

  private async flyUnder(
    lock: HeldLock,
    key: string,
    isCurrent: () => boolean,
  ): Promise<CachedLoad<Value>> {
    try {
      const found = await this.plan.cache.get(key); // Somebody may have been faster.
      if (found !== undefined && this.isFresh(found)) return found;
      const context = { signal: lock.signal, fence: lock.fenced ? lock.fence : undefined };
      return await this.load(key, context, () => isCurrent() && lock.isHeld());
    } finally {
      await lock.release().catch((error: unknown) => this.report(error));
    }
  }

  private async loadWithoutLock(key: string, isCurrent: () => boolean): Promise<CachedLoad<Value>> {
    const over = new AbortController();
    const late = new TurngateError('LOCK_LOST', `loading "${key}" took too long`);
    const timer = this.runtime.timer(this.plan.loadMaxMs, false, () => over.abort(late));
    try {
      return await this.load(key, { signal: over.signal, fence: undefined }, isCurrent);
    } finally {
      timer.cancel();
    }
  }

  private async load(
    key: string,
    context: LoadContext,
    mayKeep: () => boolean,
  ): Promise<CachedLoad<Value>> {
    const { freshMs, staleMs, negativeMs } = this.plan;
    const { signal } = context;
    const keep = async (entry: CachedLoad<Value>, keepMs: number): Promise<void> => {
      if (!mayKeep()) return; // A later loader may have stored something newer.
      const how = { keepMs, fence: context.fence };
      await this.plan.cache.set(key, entry, how).catch((error: unknown) => this.report(error));
    };
    try {
      const loading = (async () => await this.plan.load(key, context))();
      // A load that does not listen to its signal must not keep everybody waiting.
      const onCut = (): Error => signal.reason as Error;
      const value = await waitFor(this.runtime, loading, { limitMs: undefined, onCut, signal });
      const entry = { value, freshUntilMs: this.runtime.wallMs() + freshMs };
      await keep(entry, freshMs + staleMs);
      return entry;
    } catch (error) {
      if (negativeMs > 0 && !signal.aborted) {
        const failure = error instanceof Error ? error.message : String(error);
        await keep({ failure, freshUntilMs: this.runtime.wallMs() + negativeMs }, negativeMs);
      }
      throw error;
    }
  }

  private open(entry: CachedLoad<Value>): Value {
    if ('value' in entry) return entry.value;
    const retryAfterMs = Math.max(1, Math.ceil(entry.freshUntilMs - this.runtime.wallMs()));
    throw new TurngateError('LOAD_FAILED', entry.failure, { retryAfterMs });
  }

  private isFresh(entry: CachedLoad<Value>): boolean {
    return entry.freshUntilMs > this.runtime.wallMs();
  }

  private lockName(key: string): string {
    return `${this.plan.name}/${key}`;
  }

  private report(error: unknown): void {
    try {
      this.plan.onError(error);
    } catch {
      // A reporter that throws must not take a value from its caller.
    }
  }
}
