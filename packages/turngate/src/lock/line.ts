/**
 * Everybody of this process who wants one name: first come first served, one of them represented at
 * the store by a campaign. A mutex has one turn at a time here; shares have none, their holders
 * come and go while the line only orders who asks next.
 */
import type { LockAnswer, LockGrant, LockGranted, LockStore } from '../contract/lock-store.ts';
import type { ChurnMap } from '../runtime/churn-map.ts';
import { emit, listened } from '../runtime/events.ts';
import type { Timer } from '../runtime/runtime.ts';
import { Campaign, type CampaignLine } from './campaign.ts';
import { Hold, Turn, type TurnHome } from './hold.ts';
import type { LockParts } from './parts.ts';
import { releaseInBackground } from './release.ts';
import type { Waiter, WaiterLine } from './waiter.ts';

/**
 * Where the store keeps no queue, a process that always wants the name again would keep it for ever:
 * others ask at most every 250 ms. After such a run it frees the name and stays away for a poll of
 * theirs.
 */
const runMsMax = 1_000;
const stayAwayMs = 300;

/** Names somebody of this process holds or waits for. */
export type Lines = ChurnMap<Line>;

/** The local queue of one name (and, for shares, of one class of takers). */
export class Line implements TurnHome, CampaignLine, WaiterLine {
  readonly key: string;
  readonly parts: LockParts;
  head: Waiter | undefined;
  tail: Waiter | undefined;
  turn: Turn | undefined;
  campaign: Campaign | undefined;
  /** The store has told this line that another holds the name. */
  seenHeld = false;
  /** The last answer of the store was an error. */
  trouble: unknown;

  private readonly lines: Lines;
  /** Since when the name has been ours without a break; only where the store keeps no queue. */
  private runSinceMonoMs: number | undefined;
  /** Staying away, so that other processes get their turn. */
  private away: Timer | undefined;

  constructor(parts: LockParts, lines: Lines, key: string) {
    this.parts = parts;
    this.lines = lines;
    this.key = key;
  }

  get contended(): boolean {
    return this.seenHeld || this.head !== undefined;
  }

  /** Takes a place by order of arrival, which is nearly always the last one. */
  enter(waiter: Waiter): void {
    waiter.line = this;
    let before = this.tail;
    while (before !== undefined && before.startMonoMs > waiter.startMonoMs) before = before.before;
    waiter.before = before;
    waiter.behind = before === undefined ? this.head : before.behind;
    if (before === undefined) this.head = waiter;
    else before.behind = waiter;
    if (waiter.behind === undefined) this.tail = waiter;
    else waiter.behind.before = waiter;
  }

  /** Takes a waiter out, from anywhere, in O(1). */
  leave(waiter: Waiter): void {
    if (waiter.before === undefined) this.head = waiter.behind;
    else waiter.before.behind = waiter.behind;
    if (waiter.behind === undefined) this.tail = waiter.before;
    else waiter.behind.before = waiter.before;
    waiter.before = undefined;
    waiter.behind = undefined;
  }

  /** Ends a waiter with an error; what it has at the store goes to the next one or is given up. */
  giveUp(waiter: Waiter, error: unknown): void {
    const wasHead = waiter === this.head;
    this.leave(waiter);
    waiter.fail(error);
    if (wasHead) this.headChanged();
  }

  private headChanged(): void {
    const { campaign } = this;
    if (campaign !== undefined && (this.head === undefined || !campaign.suits(this.head))) {
      campaign.drop();
    }
    this.proceed();
  }

  /** Does whatever is next: ask for the head, or disappear. */
  proceed(nowMonoMs?: number): void {
    if (this.turn !== undefined || this.campaign !== undefined) return;
    if (this.away !== undefined && this.head !== undefined && this.head.timing.waitMs > 0) return;
    if (this.head === undefined) {
      this.away?.cancel();
      this.away = undefined;
      if (this.lines.get(this.key) === this) this.lines.delete(this.key);
      return;
    }
    this.campaign = new Campaign(this, this.head);
    this.campaign.start(nowMonoMs ?? this.parts.runtime.monoMs());
  }

  /** One more try beside the line: several shares of this process may ask at once. */
  tryAside(waiter: Waiter): void {
    this.enter(waiter);
    this.campaign = new Campaign(this, waiter, true);
    this.campaign.start(waiter.startMonoMs);
  }

  standInLine(waiter: Waiter): void {
    this.leave(waiter);
    let line = this.lines.get(this.key);
    if (line === undefined) {
      line = this;
      this.lines.set(this.key, this);
    }
    line.seenHeld = true;
    line.enter(waiter);
    waiter.watchClock();
    line.proceed();
  }

  /** The store has granted the campaign's attempt; the hold begins at `startMonoMs`. */
  granted(campaign: Campaign, granted: LockGranted, startMonoMs: number): void {
    const { attempt } = campaign;
    const { parts } = this;
    this.campaign = undefined;
    this.trouble = undefined;
    const waiter = this.head;
    if (waiter === undefined) {
      releaseInBackground(parts.runtime, parts.store, attempt);
      this.proceed();
      return;
    }
    const shared = attempt.share !== undefined;
    const { renew } = waiter.timing;
    const turn = new Turn(attempt, granted.fence, startMonoMs, renew, shared ? undefined : this);
    turn.extend(campaign.sinceMonoMs, campaign.sinceWallMs);
    if (!shared) this.turn = turn;
    if (!parts.queued && (campaign.waited || this.runSinceMonoMs === undefined)) {
      this.runSinceMonoMs = startMonoMs;
    }
    this.serveHead(waiter, turn, startMonoMs);
    if (shared) this.proceed();
  }

  /** Gives a turn to the head of the line. */
  private serveHead(waiter: Waiter, turn: Turn, nowMonoMs: number): void {
    const { parts } = this;
    const hold = new Hold(parts.keeper, turn, nowMonoMs, waiter.timing);
    parts.renewal.watch(turn);
    this.leave(waiter);
    if (listened('lock')) {
      const waitMs = parts.runtime.monoMs() - waiter.startMonoMs;
      const fence = parts.fenced ? hold.fence : undefined;
      const { name } = turn.attempt;
      emit('lock', { type: 'acquired', lock: name, store: parts.store.name, waitMs, fence });
    }
    waiter.serve(hold);
  }

  /** Bounded, so that other processes get their turn; never on doubt, never without a new fence. */
  mayHandOver(turn: Turn, nowMonoMs: number): boolean {
    if (this.head === undefined) return false;
    const { timing } = this.head;
    const { leaseMs, fences = 1 } = turn.attempt;
    return (
      turn.handed + 1 < fences &&
      turn.handed < timing.handOverTurns &&
      nowMonoMs - turn.startMonoMs < timing.handOverMs &&
      turn.deadlineMonoMs - nowMonoMs > leaseMs / 3 &&
      !turn.doubtful &&
      timing.leaseMs === leaseMs &&
      timing.renew === turn.renew
    );
  }

  handOver(turn: Turn, nowMonoMs: number): void {
    turn.handed++;
    this.serveHead(this.head as Waiter, turn, nowMonoMs);
  }

  private stayAway(): void {
    this.runSinceMonoMs = undefined;
    this.away?.cancel();
    this.away = this.parts.runtime.timer(stayAwayMs, true, () => {
      this.away = undefined;
      this.proceed();
    });
  }

  passOn(turn: Turn, nowMonoMs: number): Promise<LockAnswer> | undefined {
    const { store } = this.parts;
    const { pass } = store;
    if (this.head === undefined) return undefined;
    if (nowMonoMs - (this.runSinceMonoMs ?? nowMonoMs) > runMsMax) {
      this.stayAway();
      return undefined;
    }
    if (pass === undefined) return undefined;
    this.turn = undefined;
    const campaign = new Campaign(this, this.head);
    this.campaign = campaign;
    let answer!: Promise<LockAnswer>;
    campaign.startWith(() => {
      const passed = pass.call(store, turn.attempt, campaign.attempt);
      answer = passed.then(answerOf);
      return passed.then(grantOf);
    }, nowMonoMs);
    return answer;
  }
}

type Passed = Awaited<ReturnType<NonNullable<LockStore['pass']>>>;
const answerOf = ({ answer }: Passed): LockAnswer => answer;
const grantOf = ({ grant }: Passed): LockGrant => grant;
