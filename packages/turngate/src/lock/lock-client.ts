/** Locks over any lock store: checks the call, then leaves it to the line of its name. */
import type { LockState, LockStore } from '../contract/lock-store.ts';
import { TurngateError } from '../core/errors.ts';
import { ChurnMap } from '../runtime/churn-map.ts';
import { DueHeap } from '../runtime/due-heap.ts';
import { emit } from '../runtime/events.ts';
import { findFrame, inFrame } from '../runtime/flow-context.ts';
import { attemptIds, type Runtime } from '../runtime/runtime.ts';
import { abortedError, waitFor } from '../runtime/wait.ts';
import { LockAdvice, type LockStatistics } from './advice.ts';
import { type AdoptOptions, adopt } from './give-away.ts';
import type { Hold } from './hold.ts';
import { Line, type Lines } from './line.ts';
import { acquireInOrder, type LockGroup, orderedNames } from './lock-group.ts';
import { LockHandle } from './lock-handle.ts';
import { checkLockName, type LockOptions, type LockTiming, lockTiming } from './options.ts';
import { callLimitMs, type LockParts, storeError } from './parts.ts';
import { releaseInBackground } from './release.ts';
import { Renewal } from './renewal.ts';
import { closeTurn } from './turn-end.ts';
import { Waiter } from './waiter.ts';

/** Takes and keeps locks of one store. */
export class LockClient {
  private readonly parts: LockParts;
  private readonly lines: Lines = new ChurnMap();

  constructor(store: LockStore, runtime: Runtime) {
    const calls = new DueHeap(runtime, false);
    this.parts = {
      store,
      runtime,
      calls,
      waits: new DueHeap(runtime, true),
      renewal: new Renewal(runtime, store, calls),
      keeper: { runtime, onLost: (hold) => this.onLost(hold) },
      advice: new LockAdvice(runtime, store.name),
      nextOwner: attemptIds(runtime),
      queued: store.capabilities.fairness === 'fifo',
      fenced: store.capabilities.fencing !== 'none',
      blocks: store.capabilities.fenceBlocks,
    };
  }

  /** Locks held by this process through this client. */
  get heldCount(): number {
    return this.parts.renewal.size;
  }

  /** The live holder of a name as the store sees it; undefined when free. */
  async inspect(name: string): Promise<LockState | undefined> {
    return await this.limited(this.parts.store.inspect(checkLockName(name)));
  }

  /** Takes a name from whoever holds it. */
  async forceRelease(name: string): Promise<'released' | 'free'> {
    const { store } = this.parts;
    checkLockName(name);
    if (store.forceRelease === undefined) {
      const message = `lock store "${store.name}" cannot take a lock from its holder`;
      throw new TurngateError('OPTION_INVALID', message);
    }
    return await this.limited(store.forceRelease(name));
  }

  /** A client that waits for its server without end must not make us do so. */
  private limited<T>(call: Promise<T>): Promise<T> {
    const onCut = (): TurngateError =>
      storeError(this.parts, `gave no answer within ${callLimitMs} ms`);
    return waitFor(this.parts.runtime, call, { limitMs: callLimitMs, onCut });
  }

  /** What was measured about the names used most recently. */
  statistics(): readonly LockStatistics[] {
    return this.parts.advice.statistics();
  }

  /** Takes over a lock that was given away as text. */
  async adopt(text: string, options: AdoptOptions = {}): Promise<LockHandle> {
    return new LockHandle(this.parts, await adopt(this.parts, text, options));
  }

  /** Runs `body` under the lock and releases it whatever happens. */
  async run<T>(
    name: string,
    options: LockOptions | undefined,
    body: (lock: LockHandle) => Promise<T>,
  ): Promise<T> {
    const handle = await this.acquire(name, options);
    return await keeping(handle, [handle], () => this.inside(handle, () => body(handle)));
  }

  /** Takes several names, all or none, within one `waitMs`. */
  async acquireAll(names: readonly string[], options: LockOptions = {}): Promise<LockGroup> {
    const ordered = orderedNames(names);
    const { waitMs } = lockTiming(options);
    const endMonoMs = this.parts.runtime.monoMs() + waitMs;
    return await acquireInOrder(ordered, (name) => {
      const leftMs = Math.max(0, Math.ceil(endMonoMs - this.parts.runtime.monoMs()));
      return this.acquire(name, { ...options, waitMs: waitMs === 0 ? 0 : leftMs });
    });
  }

  /** Runs `body` under all of the names and releases them whatever happens. */
  async runAll<T>(
    names: readonly string[],
    options: LockOptions | undefined,
    body: (group: LockGroup) => Promise<T>,
  ): Promise<T> {
    const group = await this.acquireAll(names, options);
    let inside = (): Promise<T> => body(group);
    for (const lock of group.locks) {
      const within = inside;
      inside = () => this.inside(lock, within);
    }
    return await keeping(group, group.locks, inside);
  }

  /** Runs `body` so that what it calls knows which lock this flow holds. */
  private inside<T>(handle: LockHandle, body: () => Promise<T>): Promise<T> {
    return inFrame(this.frame(handle.name), handle.hold, body);
  }

  /**
   * Takes the lock, or ends in BUSY, ABORTED or STORE_UNAVAILABLE leaving nothing behind. No async
   * function: on the fast path the caller waits for one promise more than the store's.
   */
  acquire(name: string, options?: LockOptions): Promise<LockHandle> {
    try {
      checkLockName(name);
      const timing = lockTiming(options);
      const joined = this.reenter(name, timing);
      if (joined !== undefined) return Promise.resolve(joined);
      const signal = options?.signal;
      if (signal?.aborted) throw abortedError(signal);
      return new Promise((resolve, reject) => {
        this.start(new Waiter(this.parts, name, timing, signal, resolve, reject));
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  private start(waiter: Waiter): void {
    const { parts } = this;
    const { share, waitMs } = waiter.timing;
    const key = share === undefined ? waiter.name : shareKey(waiter);
    const line = this.lines.get(key);
    if (line === undefined) {
      const own = new Line(parts, this.lines, key);
      if (share === undefined) {
        own.enter(waiter);
        this.lines.set(key, own);
        own.proceed(waiter.startMonoMs);
      } else {
        // Nobody of this process waits: several may ask at once, beside the line.
        own.tryAside(waiter);
      }
    } else {
      line.enter(waiter);
      if (waitMs === 0) line.giveUp(waiter, waiter.busyError());
      else waiter.watchClock();
    }
  }

  private reenter(name: string, timing: LockTiming): LockHandle | undefined {
    if (timing.onReentry === 'wait') return undefined;
    const frame = findFrame(this.frame(name));
    if (frame === undefined) return undefined;
    const hold = frame.value as Hold;
    if (timing.onReentry === 'throw' || !covers(hold, timing)) {
      throw new TurngateError('LOCK_REENTERED', `this flow already holds lock "${name}"`);
    }
    if (!hold.isHeld()) throw hold.lostError();
    hold.handles++;
    return new LockHandle(this.parts, hold);
  }

  private onLost(hold: Hold): void {
    const { parts } = this;
    const { turn } = hold;
    closeTurn(parts, turn);
    const { name } = turn.attempt;
    const holdMs = parts.runtime.monoMs() - hold.startMonoMs;
    const reason = hold.lossReason as string;
    emit('lock', { type: 'lost', lock: name, store: parts.store.name, holdMs, reason });
    // We may believe it lost while the store still shows us: let the next one in at once.
    if (reason !== 'taken') releaseInBackground(parts.runtime, parts.store, turn.attempt);
    if (turn.line?.turn !== turn) return;
    turn.line.turn = undefined;
    turn.line.proceed();
  }

  private frame(name: string): string {
    return `lock:${this.parts.store.name}:${name}`;
  }
}

/** Runs `body`, then lets go; a body that ended well under a lost lock did not end well. */
async function keeping<T>(
  what: LockHandle | LockGroup,
  locks: readonly LockHandle[],
  body: () => Promise<T>,
): Promise<T> {
  let value: T;
  try {
    value = await body();
  } catch (error) {
    await what.release(); // Its own trouble goes to events: the body's error is the news.
    throw error;
  }
  // isHeld() looks at the clocks: a lease that ended just now counts as lost.
  const lost = locks.find(({ hold }) => !hold.isHeld() && hold.state === 'lost');
  await what.release();
  if (lost !== undefined) throw lost.hold.lostError();
  return value;
}

/** Names have no control characters, so no name looks like a key of a share. */
function shareKey({ name, timing: { share } }: Waiter): string {
  return share?.urgent ? `\u0001w${name}` : `\u0001s${name}`;
}

/** Does what the flow holds include what it asks for? */
function covers({ turn }: Hold, { share }: LockTiming): boolean {
  const held = turn.attempt.share;
  if (held === undefined || share === undefined) return held === share;
  return held.limit === share.limit && held.take >= share.take;
}
