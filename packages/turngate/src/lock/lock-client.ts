/** The mutex over any lock store: local queue, one server-side waiter, renewal, loss, release. */
import type { LockAttempt, LockGrant, LockState, LockStore } from '../contract/lock-store.ts';
import { isTurngateError, TurngateError } from '../core/errors.ts';
import { emit } from '../runtime/events.ts';
import { findFrame, inFrame } from '../runtime/flow-context.ts';
import { attemptIds, type Runtime } from '../runtime/runtime.ts';
import { abortedError, backoffMs, type Cut, sleep, waitFor } from '../runtime/wait.ts';
import { Hold } from './hold.ts';
import { LocalQueues, type Place } from './local-queue.ts';
import { LockHandle, type ReleaseResult } from './lock-handle.ts';
import { checkLockName, type LockOptions, type LockTiming, lockTiming } from './options.ts';
import { releaseInBackground } from './release.ts';
import { Renewal } from './renewal.ts';

const callLimitMs = 5_000; // One command of the store; the wait budget is checked on top of it.
const pollRange = { baseMs: 10, capMs: 250 };

interface Waiting {
  readonly name: string;
  readonly timing: LockTiming;
  readonly signal: AbortSignal | undefined;
  readonly startMonoMs: number;
}

/** Takes and keeps locks of one store. */
export class LockClient {
  private readonly store: LockStore;
  private readonly runtime: Runtime;
  private readonly queues = new LocalQueues();
  private readonly renewal: Renewal;
  private readonly nextOwner: () => string;

  constructor(store: LockStore, runtime: Runtime) {
    this.store = store;
    this.runtime = runtime;
    this.renewal = new Renewal(runtime, store);
    this.nextOwner = attemptIds(runtime);
  }

  /** Locks held by this process through this client. */
  get heldCount(): number {
    return this.renewal.size;
  }

  /** The live holder of a name as the store sees it; undefined when free. */
  inspect(name: string): Promise<LockState | undefined> {
    return this.store.inspect(checkLockName(name));
  }

  /** Runs `body` under the lock and releases it whatever happens. */
  async run<T>(
    name: string,
    options: LockOptions,
    body: (lock: LockHandle) => Promise<T>,
  ): Promise<T> {
    const handle = await this.acquire(name, options);
    let value: T;
    try {
      value = await inFrame(this.frame(name), handle.hold, () => body(handle));
    } catch (error) {
      await handle.release(); // Its own trouble goes to events: the body's error is the news.
      throw error;
    }
    handle.hold.isHeld(); // Looks at the clocks: a lease that ended just now counts as lost.
    const lost = handle.hold.state === 'lost';
    await handle.release();
    if (lost) throw handle.hold.lostError();
    return value;
  }

  /** Takes the lock, or ends in BUSY, ABORTED or STORE_UNAVAILABLE leaving nothing behind. */
  async acquire(name: string, options: LockOptions): Promise<LockHandle> {
    checkLockName(name);
    const timing = lockTiming(options);
    const { signal } = options;
    const joined = this.reenter(name, timing);
    if (joined !== undefined) return joined;
    if (signal?.aborted) throw abortedError(signal);
    const waiting: Waiting = { name, timing, signal, startMonoMs: this.runtime.monoMs() };
    if (timing.waitMs === 0 && this.queues.occupied(name)) throw this.busy(waiting);
    const place = this.queues.enter(name);
    try {
      await waitFor(this.runtime, place.turn, {
        limitMs: timing.waitMs === 0 ? undefined : timing.waitMs,
        onCut: (cut) => this.cutError(waiting, cut),
        signal,
      });
      return await this.acquireAsHead(waiting, place);
    } catch (error) {
      place.leave();
      throw error;
    }
  }

  private reenter(name: string, timing: LockTiming): LockHandle | undefined {
    const frame = findFrame(this.frame(name));
    if (frame === undefined || timing.onReentry === 'wait') return undefined;
    const hold = frame.value as Hold;
    if (timing.onReentry === 'throw') {
      throw new TurngateError('LOCK_REENTERED', `this flow already holds lock "${name}"`);
    }
    if (!hold.isHeld()) throw hold.lostError();
    hold.shares++;
    return new LockHandle(hold, () => this.leave(hold));
  }

  /** Only one flow per process and name is here at a time. */
  private async acquireAsHead(waiting: Waiting, place: Place): Promise<LockHandle> {
    const { name, timing, signal, startMonoMs } = waiting;
    const attempt: LockAttempt = { name, owner: this.nextOwner(), leaseMs: timing.leaseMs };
    for (let tries = 0; ; tries++) {
      const sentMonoMs = this.runtime.monoMs();
      const grant = await this.tryOnce(waiting, attempt);
      if (grant.kind === 'granted') {
        const { maxHoldMs } = timing;
        const hold = new Hold(
          this.runtime,
          { attempt, fence: grant.fence, sentMonoMs, maxHoldMs, place },
          (lost) => this.onLost(lost),
        );
        this.renewal.add(hold, timing.renew);
        const waitMs = this.runtime.monoMs() - startMonoMs;
        emit('lock', {
          type: 'acquired',
          lock: name,
          store: this.store.name,
          waitMs,
          fence: grant.fence,
        });
        return new LockHandle(hold, () => this.leave(hold));
      }
      const leftMs = startMonoMs + timing.waitMs - this.runtime.monoMs();
      if (leftMs <= 0 || timing.waitMs === 0) throw this.busy(waiting);
      const pauseMs = Math.min(
        leftMs,
        grant.remainingMs + 1,
        backoffMs(this.runtime, tries, pollRange),
      );
      await this.pause(name, pauseMs, signal);
    }
  }

  private async tryOnce(waiting: Waiting, attempt: LockAttempt): Promise<LockGrant> {
    const call = this.store.tryAcquire(attempt);
    try {
      return await waitFor(this.runtime, call, {
        limitMs: callLimitMs,
        onCut: (cut) => this.cutError(waiting, cut, 'no answer'),
        signal: waiting.signal,
      });
    } catch (error) {
      // The command may still be granted, now or after a resend: take back whatever it gets.
      releaseInBackground(this.runtime, this.store, attempt, call);
      if (isTurngateError(error)) throw error;
      const message = `lock store "${this.store.name}" failed: ${(error as Error).message}`;
      throw new TurngateError('STORE_UNAVAILABLE', message, { cause: error });
    }
  }

  /** Sleeps, or wakes early where the store pushes. */
  private async pause(name: string, pauseMs: number, signal?: AbortSignal): Promise<void> {
    if (this.store.watch === undefined) return sleep(this.runtime, pauseMs, signal);
    let unwatch!: () => void;
    const freed = new Promise<void>((resolve) => {
      unwatch = this.store.watch?.(name, resolve) as () => void;
    });
    try {
      const slept = new Error('slept');
      const limits = {
        limitMs: pauseMs,
        onCut: (cut: Cut) => (cut === 'abort' ? abortedError(signal as AbortSignal) : slept),
        signal,
      };
      await waitFor(this.runtime, freed, limits).catch((error: unknown) => {
        if (error !== slept) throw error;
      });
    } finally {
      unwatch();
    }
  }

  private onLost(hold: Hold): void {
    this.renewal.remove(hold);
    hold.place.leave();
    const { name } = hold.attempt;
    const holdMs = this.runtime.monoMs() - hold.acquiredMonoMs;
    const reason = hold.lossReason as string;
    emit('lock', { type: 'lost', lock: name, store: this.store.name, holdMs, reason });
    // We may believe it lost while the store still shows us: let the next one in at once.
    if (reason !== 'taken') releaseInBackground(this.runtime, this.store, hold.attempt);
  }

  /** One handle lets go; the last one frees the lock. */
  private async leave(hold: Hold): Promise<ReleaseResult> {
    if (!hold.isHeld()) return hold.lossReason === 'taken' ? 'taken' : 'expired';
    if (hold.shares > 1) {
      hold.shares--;
      return 'released';
    }
    hold.state = 'released';
    this.renewal.remove(hold);
    const result = await this.releaseHold(hold);
    hold.place.leave();
    return result;
  }

  private async releaseHold(hold: Hold): Promise<ReleaseResult> {
    const { name } = hold.attempt;
    const store = this.store.name;
    try {
      const answer = await waitFor(this.runtime, this.store.release(hold.attempt), {
        limitMs: callLimitMs,
        onCut: () => new Error(`no answer to a release within ${callLimitMs} ms`),
      });
      const result = answer === 'ours' ? 'released' : answer;
      const holdMs = this.runtime.monoMs() - hold.acquiredMonoMs;
      emit('lock', { type: 'released', lock: name, store, holdMs, result });
      return result;
    } catch (error) {
      emit('lock', { type: 'release-failed', lock: name, store, error });
      releaseInBackground(this.runtime, this.store, hold.attempt);
      return 'expired';
    }
  }

  private cutError(waiting: Waiting, cut: Cut, what?: string): TurngateError {
    if (cut === 'abort') return abortedError(waiting.signal as AbortSignal);
    if (what === undefined) return this.busy(waiting);
    const message = `lock store "${this.store.name}": ${what} within ${callLimitMs} ms`;
    return new TurngateError('STORE_UNAVAILABLE', message);
  }

  private busy({ name, timing, startMonoMs }: Waiting): TurngateError {
    const waitMs = this.runtime.monoMs() - startMonoMs;
    emit('lock', { type: 'busy', lock: name, store: this.store.name, waitMs });
    const message = `lock "${name}" is held by another; waited ${timing.waitMs} ms`;
    return new TurngateError('BUSY', message, { retryAfterMs: 1_000 });
  }

  private frame(name: string): string {
    return `lock:${this.store.name}:${name}`;
  }
}
