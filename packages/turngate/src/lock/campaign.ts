/**
 * One attempt of one line at the store, from the first try until it is granted or given up: tries,
 * waits for a push, tries again after a bounded while. The caller at the head of the line may change
 * meanwhile; the place in the store's queue stays.
 */
import type { LockAttempt, LockGrant, LockGranted } from '../contract/lock-store.ts';
import { isTurngateError } from '../core/errors.ts';
import type { Due, DueHeap } from '../runtime/due-heap.ts';
import { backoffMs } from '../runtime/wait.ts';
import { beliefMs } from './hold.ts';
import type { LockTiming } from './options.ts';
import { callLimitMs, type LockParts, storeError } from './parts.ts';
import { releaseInBackground } from './release.ts';
import type { Waiter } from './waiter.ts';

const pollRange = { baseMs: 10, capMs: 250 };
const queueMs = 5_000; // A process that died gives up its place after this; tries repeat sooner.
const idleMs = 1_000; // At most one command a second for whoever only waits for a push.
const troubleMs = 200; // At most five tries a second at a store that asks to come back later.

/** The line as its campaign sees it. */
export interface CampaignLine {
  readonly parts: LockParts;
  /** Whom the attempt is for at the moment. */
  readonly head: Waiter | undefined;
  campaign: Campaign | undefined;
  seenHeld: boolean;
  trouble: unknown;
  giveUp(waiter: Waiter, error: unknown): void;
  /** A share that was refused beside the line now waits in it. */
  standInLine(waiter: Waiter): void;
  /** The store has granted the campaign's attempt; the hold begins at `startMonoMs`. */
  granted(campaign: Campaign, granted: LockGranted, startMonoMs: number): void;
}

/** How the attempt of a waiter looks. */
function attemptFor(line: CampaignLine, { name, timing }: Waiter, aside: boolean): LockAttempt {
  const { parts } = line;
  const { leaseMs, share, handOverTurns } = timing;
  const owner = parts.nextOwner();
  const queued = parts.queued && !aside && timing.waitMs > 0;
  if (share !== undefined) {
    return { name, owner, leaseMs, share, ...(queued && { queueMs }) };
  }
  // Whole literals: this is the fast path.
  if (parts.blocks && handOverTurns > 0) {
    const fences = handOverTurns + 1;
    if (queued) return { name, owner, leaseMs, fences, queueMs };
    return { name, owner, leaseMs, fences };
  }
  return queued ? { name, owner, leaseMs, queueMs } : { name, owner, leaseMs };
}

type Phase = 'asking' | 'pausing' | 'confirming' | 'over';

/** An attempt under way. */
export class Campaign implements Due {
  readonly attempt: LockAttempt;
  dueMonoMs = 0;
  dueIndex = -1;
  private readonly line: CampaignLine;
  private readonly timing: LockTiming;
  /** One try of a share beside the line: it stands in no queue and leaves nothing when refused. */
  private readonly aside: boolean;
  private phase: Phase = 'asking';
  private call: Promise<unknown> | undefined;
  private sentMonoMs = 0;
  private sentWallMs = 0;
  /** May a try have been granted? Then no lease of this attempt has begun before `since…`. */
  private begun = false;
  sinceMonoMs = 0;
  sinceWallMs = 0;
  private tries = 0;
  private freeFromMonoMs = 0;
  private woken = false;
  private pushed: LockGranted | undefined;
  private unwatch: (() => void) | undefined;
  /** The clock it is on: of commands while one is under way, of waiting between two. */
  private clock: DueHeap | undefined;

  constructor(line: CampaignLine, waiter: Waiter, aside = false) {
    this.line = line;
    this.timing = waiter.timing;
    this.aside = aside;
    this.attempt = attemptFor(line, waiter, aside);
  }

  /** Did it meet a holder of another process? */
  get waited(): boolean {
    return this.tries > 1;
  }

  /** Can the attempt go on for this waiter? */
  suits({ timing }: Waiter): boolean {
    return (
      timing.leaseMs === this.timing.leaseMs &&
      timing.share?.take === this.timing.share?.take &&
      timing.share?.limit === this.timing.share?.limit &&
      timing.waitMs > 0 === this.timing.waitMs > 0 &&
      !this.aside
    );
  }

  start(nowMonoMs: number): void {
    this.listen();
    this.ask(nowMonoMs);
  }

  /** Starts with a try that somebody else sends, together with a release. */
  startWith(send: () => Promise<LockGrant>, nowMonoMs: number): void {
    this.listen();
    this.noteTime(nowMonoMs);
    this.await(send());
  }

  /** Before the first try, so that no push can fall between a try and the listening. */
  private listen(): void {
    const { store } = this.line.parts;
    if (store.watch === undefined || this.aside || this.timing.waitMs === 0) return;
    this.unwatch = store.watch(this.attempt, (granted) => this.onPush(granted));
  }

  private ask(nowMonoMs: number = this.line.parts.runtime.monoMs()): void {
    const { store } = this.line.parts;
    this.noteTime(nowMonoMs);
    this.woken = false;
    let call: Promise<LockGrant>;
    try {
      call = store.tryAcquire(this.attempt);
    } catch (error) {
      call = Promise.reject(error);
    }
    this.await(call);
  }

  /** Called before a try is sent: a lease it gets counts from here, or from a try before. */
  private noteTime(nowMonoMs: number): void {
    this.sentMonoMs = nowMonoMs;
    this.sentWallMs = this.line.parts.runtime.wallMs();
    if (!this.begun) this.begin();
  }

  private begin(): void {
    this.begun = true;
    this.sinceMonoMs = this.sentMonoMs;
    this.sinceWallMs = this.sentWallMs;
  }

  private await(call: Promise<LockGrant>): void {
    this.phase = 'asking';
    this.tries++;
    this.call = call;
    const head = this.line.head as Waiter;
    const limitMs = callLimitMs;
    const endMonoMs = this.sentMonoMs + limitMs;
    const inTime = head.timing.waitMs > 0 ? Math.min(endMonoMs, head.endMonoMs) : endMonoMs;
    this.setClock(this.line.parts.calls, inTime);
    call.then(
      (grant) => this.answered(grant),
      (error: unknown) => this.failed(error),
    );
  }

  private answered(grant: LockGrant): void {
    if (this.phase === 'over') return; // Given up meanwhile; the background release follows.
    const { line } = this;
    this.clock?.remove(this);
    this.call = undefined;
    if (grant.kind === 'granted') {
      this.granted(grant);
      return;
    }
    // In the queue, the store may grant it from now on; else nothing of this try is left there.
    this.begun = false;
    if (this.attempt.queueMs !== undefined) this.begin();
    if (this.pushed !== undefined) {
      this.granted(this.pushed);
      return;
    }
    line.seenHeld = true;
    line.trouble = undefined;
    const head = line.head as Waiter;
    if (head.timing.waitMs === 0) {
      line.giveUp(head, head.overError());
      return;
    }
    if (this.aside) {
      this.finish();
      line.standInLine(head);
      return;
    }
    head.watchClock();
    if (this.woken) this.ask();
    else this.pause(this.pauseMs(grant.remainingMs));
  }

  private pauseMs(remainingMs: number): number {
    const { runtime, store } = this.line.parts;
    const untilFreeMs = Math.max(1, remainingMs + 1);
    if (store.watch === undefined) {
      return Math.min(untilFreeMs, backoffMs(runtime, this.tries - 1, pollRange));
    }
    // A try at the end of the holder's lease, if the budget of a command a second allows it.
    const nowMs = runtime.monoMs();
    this.freeFromMonoMs = Math.max(this.freeFromMonoMs + idleMs, nowMs);
    const longMs = idleMs * (1 + runtime.random() / 2);
    const owedMs = Math.min(this.freeFromMonoMs - nowMs, idleMs);
    return Math.max(Math.min(untilFreeMs, longMs), owedMs);
  }

  private pause(delayMs: number): void {
    this.phase = 'pausing';
    const { waits, runtime } = this.line.parts;
    this.setClock(waits, runtime.monoMs() + delayMs);
  }

  private setClock(clock: DueHeap, atMonoMs: number): void {
    this.clock = clock;
    clock.set(this, atMonoMs);
  }

  onDue(nowMonoMs: number): void {
    if (this.phase === 'pausing') {
      this.ask();
      return;
    }
    const { line } = this;
    const head = line.head as Waiter;
    const limitMonoMs = this.sentMonoMs + callLimitMs;
    if (nowMonoMs >= limitMonoMs) {
      const error = storeError(line.parts, `gave no answer within ${callLimitMs} ms`);
      line.trouble = error;
      this.drop();
      line.giveUp(head, error);
      return;
    }
    this.setClock(line.parts.calls, limitMonoMs);
    if (nowMonoMs >= head.endMonoMs) line.giveUp(head, head.overError());
  }

  private onPush(granted: LockGranted | undefined): void {
    if (granted !== undefined) this.pushed = granted;
    this.woken = true;
    if (this.phase !== 'pausing') return; // The answer under way comes first.
    this.clock?.remove(this);
    if (granted === undefined) this.ask();
    else this.granted(granted);
  }

  private granted(granted: LockGranted): void {
    const { sinceMonoMs } = this;
    let nowMonoMs = sinceMonoMs; // On the fast path nothing is asked of the clock again.
    if (granted === this.pushed || sinceMonoMs !== this.sentMonoMs) {
      nowMonoMs = this.line.parts.runtime.monoMs();
      const { leaseMs } = this.attempt;
      // Granted while we waited: if too much of the lease may be over, ask for a fresh one first.
      if (sinceMonoMs + beliefMs(leaseMs) - nowMonoMs < (leaseMs * 2) / 3) {
        this.confirm(granted);
        return;
      }
    }
    this.finish();
    this.line.granted(this, granted, nowMonoMs);
  }

  /** Renews a grant that was made while we waited; a grant that is gone means another try. */
  private confirm(granted: LockGranted): void {
    const { calls, store, runtime } = this.line.parts;
    this.phase = 'confirming';
    this.pushed = undefined;
    this.noteTime(runtime.monoMs());
    this.begin();
    const call = store.renew([this.attempt]);
    this.call = call;
    this.setClock(calls, this.sentMonoMs + callLimitMs);
    call.then(
      ([answer]) => {
        if (this.phase !== 'confirming') return;
        this.clock?.remove(this);
        this.call = undefined;
        if (answer !== 'ours') return this.ask();
        this.finish();
        this.line.granted(this, granted, this.sentMonoMs);
      },
      (error: unknown) => this.failed(error),
    );
  }

  private failed(error: unknown): void {
    if (this.phase === 'over') return;
    const { line } = this;
    const { parts } = line;
    this.clock?.remove(this);
    this.call = undefined;
    line.trouble = error;
    const head = line.head as Waiter;
    if (isTemporary(error) && head.timing.waitMs > 0 && !this.aside) {
      head.watchClock();
      this.pause(Math.max(troubleMs, error.retryAfterMs) * (1 + parts.runtime.random() / 2));
      return;
    }
    this.takeBack();
    const typed = isTurngateError(error);
    line.giveUp(head, typed ? error : storeError(parts, `failed: ${messageOf(error)}`, error));
  }

  /** The command may still be granted, now or after a resend: take back whatever it gets. */
  private takeBack(pending?: Promise<unknown>): void {
    const { runtime, store } = this.line.parts;
    this.finish();
    releaseInBackground(runtime, store, this.attempt, pending);
  }

  /** Gives the attempt up, with its place in the store's queue. */
  drop(): void {
    if (this.phase === 'over') return;
    if (this.call !== undefined) this.takeBack(this.call);
    else if (this.attempt.queueMs !== undefined) this.takeBack();
    else this.finish();
  }

  private finish(): void {
    const { line } = this;
    this.phase = 'over';
    this.clock?.remove(this);
    this.unwatch?.();
    this.unwatch = undefined;
    if (line.campaign === this) line.campaign = undefined;
  }
}

function isTemporary(error: unknown): error is { readonly retryAfterMs: number } {
  return isTurngateError(error, 'STORE_UNAVAILABLE') && error.retryAfterMs !== undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
