/** Leader election: whoever holds the lock leads, and everybody else waits for it. */
import type { LockState } from '../../contract/lock-store.ts';
import { isTurngateError, TurngateError } from '../../core/errors.ts';
import { functionOption, integerOption, knownOptions } from '../../core/option.ts';
import { ownSignal, whenAborted } from '../../runtime/abort.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import { backoffMs, sleep } from '../../runtime/wait.ts';
import { checkLockName } from '../options.ts';
import type { HeldLock, WatchedLockSource } from './lock-source.ts';

/** What the leader holds in its hands. */
export interface Lead {
  /**
   * Aborts when the office is lost (reason LOCK_LOST) or given up. Stop then: the next leader is
   * not let in by this process before the body has ended, but by another one it may be.
   */
  readonly signal: AbortSignal;
  /**
   * Grows with every leader. Enter and check it wherever the leader writes.
   *
   * @throws OPTION_INVALID on a store without fences: such a leader may save work, not guard data
   */
  readonly fence: bigint;
  /** @throws LOCK_LOST when the office may be lost. Synchronous; call it before each write. */
  assertLeading(): void;
}

/** Options of `gate.elect`. */
export interface ElectionOptions {
  /**
   * The leader's work: lasts until `lead.signal` aborts. If it returns or throws before, the office
   * is given up and this process is a candidate again after a pause.
   */
  readonly onElected: (lead: Lead) => Promise<void> | void;
  /** Told what `onElected` throws and why the store could not be asked. Must not throw. */
  readonly onError: (error: unknown) => void;
  /**
   * How long the office stays with a leader that stopped renewing it: after a crash nobody leads
   * for up to this long.
   *
   * @unit milliseconds, integer, 200 to 86_400_000
   * @default 15_000
   */
  readonly leaseMs?: number;
  /**
   * How long a new leader waits, office in hand, before `onElected` is called: time for a former
   * leader that lost it to notice and for its last requests to arrive. Every new leader waits, also
   * after a resignation, because a store does not say how the last one went.
   *
   * Consul's lock-delay does this in the store, after a lost session only. Here nothing delays the
   * grant itself, and where the fence is checked no grace is needed.
   *
   * @unit milliseconds, integer, 0 to 600_000
   * @default 0
   */
  readonly graceAfterLossMs?: number;
  /**
   * Pause before campaigning again after a lead or an error: anywhere between nothing and this, and
   * after errors in a row anywhere up to 16 times this.
   *
   * @unit milliseconds, integer, 10 to 60_000
   * @default 1_000
   */
  readonly retryMs?: number;
  /** Aborting it is `resign()`. */
  readonly signal?: AbortSignal;
  /** Clocks, timers and chance for tests. @internal */
  readonly runtime?: Runtime;
}

/** A running candidature. */
export interface Election {
  readonly name: string;
  /** Does this process lead, as far as its own clocks can tell? */
  readonly leading: boolean;
  /** The leader as the store sees it; undefined when there is none. Anybody may ask. */
  leader(): Promise<LockState | undefined>;
  /**
   * Stops for good: aborts `lead.signal`, waits for the body to end, and only then gives the office
   * up. Never rejects.
   */
  resign(): Promise<void>;
  /** Resolves after `resign()`, an aborted signal or the gate's end. Never rejects. */
  readonly ended: Promise<void>;
}

const campaignMs = 60_000; // One wait; a candidate that is not elected waits again at once.
const holdMaxMs = 604_800_000; // What locks allow: a leader steps down once a week.
const known = 'onElected onError leaseMs graceAfterLossMs retryMs signal runtime'.split(' ');

/**
 * Becomes a candidate. Two bodies never run in one process at the same time.
 *
 * Not promised: that no former leader is still at work elsewhere. A frozen one does not know that it
 * lost; only a checked fence stops its writes. After seven days a leader steps down and is a
 * candidate again.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function elect(
  locks: WatchedLockSource,
  name: string,
  options: ElectionOptions,
  closing?: AbortSignal,
): Election {
  knownOptions('elect()', options, known);
  checkLockName(name);
  functionOption('onElected', options.onElected);
  functionOption('onError', options.onError);
  const { leaseMs, graceAfterLossMs, retryMs } = options;
  const candidate = new Candidate(locks, name, {
    ...options,
    leaseMs: integerOption('leaseMs', leaseMs, { min: 200, max: 86_400_000, fallback: 15_000 }),
    graceMs: integerOption('graceAfterLossMs', graceAfterLossMs, {
      min: 0,
      max: 600_000,
      fallback: 0,
    }),
    retryMs: integerOption('retryMs', retryMs, { min: 10, max: 60_000, fallback: 1_000 }),
    runtime: options.runtime ?? systemRuntime,
  });
  candidate.start([options.signal, closing].filter((signal) => signal !== undefined));
  return candidate;
}

interface Plan extends Pick<ElectionOptions, 'onElected' | 'onError'> {
  readonly leaseMs: number;
  readonly graceMs: number;
  readonly retryMs: number;
  readonly runtime: Runtime;
}

class Candidate implements Election {
  readonly name: string;
  private readonly locks: WatchedLockSource;
  private readonly plan: Plan;
  private readonly stopping = new AbortController();
  private office: HeldLock | undefined;
  ended: Promise<void> = Promise.resolve();

  constructor(locks: WatchedLockSource, name: string, plan: Plan) {
    this.locks = locks;
    this.name = name;
    this.plan = plan;
  }

  get leading(): boolean {
    return this.office?.isHeld() === true;
  }

  async leader(): Promise<LockState | undefined> {
    return await this.locks.inspectLock(this.name);
  }

  async resign(): Promise<void> {
    this.stopping.abort(new TurngateError('ABORTED', `resigned from "${this.name}"`));
    await this.ended;
  }

  start(signals: readonly AbortSignal[]): void {
    const heard = signals.map((signal) => whenAborted(signal, () => void this.resign()));
    this.ended = this.campaign().finally(() => {
      for (const forget of heard) forget();
    });
  }

  private async campaign(): Promise<void> {
    const { leaseMs } = this.plan;
    const { signal } = this.stopping;
    const options = { leaseMs, waitMs: campaignMs, maxHoldMs: holdMaxMs, signal } as const;
    let failures = 0;
    while (!signal.aborted) {
      try {
        // 'wait': a candidature started inside a flow that holds the lock is a stranger to it.
        await this.lead(await this.locks.acquire(this.name, { ...options, onReentry: 'wait' }));
        failures = 0;
      } catch (error) {
        if (signal.aborted || isTurngateError(error, 'GATE_CLOSED')) return;
        if (isTurngateError(error, 'BUSY')) continue; // Waited all the time; no pause needed.
        failures++;
        this.report(error);
      }
      await this.rest(failures);
    }
  }

  /** Never rejects: what the body throws is reported, and the lock is given up after it. */
  private async lead(lock: HeldLock): Promise<void> {
    const over = ownSignal(lock.signal, this.stopping.signal);
    try {
      const { graceMs, runtime, onElected } = this.plan;
      if (graceMs > 0) await sleep(runtime, graceMs, over.signal);
      if (over.signal.aborted) return;
      this.office = lock;
      await onElected({
        signal: over.signal,
        // Read only when asked for: a store without fences throws.
        get fence() {
          return lock.fence as bigint;
        },
        assertLeading: () => lock.assertHeld(),
      });
    } catch (error) {
      if (!isPartOf(over.signal, error)) this.report(error);
    } finally {
      this.office = undefined;
      over.forget();
      await lock.release().catch((error: unknown) => this.report(error));
    }
  }

  private async rest(failures: number): Promise<void> {
    const { runtime, retryMs } = this.plan;
    const pauseMs = backoffMs(runtime, failures, { baseMs: retryMs, capMs: 16 * retryMs });
    await sleep(runtime, pauseMs, this.stopping.signal).catch(() => undefined);
  }

  private report(error: unknown): void {
    try {
      this.plan.onError(error);
    } catch {
      // A reporter that throws must not end the candidature.
    }
  }
}

/** Is it only the echo of the abort? Those who passed the signal on get it thrown back. */
function isPartOf(signal: AbortSignal, error: unknown): boolean {
  if (!signal.aborted) return false;
  if (error === signal.reason || isTurngateError(error, 'ABORTED')) return true;
  return error instanceof Error && error.name === 'AbortError';
}
