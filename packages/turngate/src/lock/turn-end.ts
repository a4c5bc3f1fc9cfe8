/** The end of a hold: handed to the next caller of this process, passed on, or released. */
import type { LockAnswer } from '../contract/lock-store.ts';
import type { Due } from '../runtime/due-heap.ts';
import { emit, listened } from '../runtime/events.ts';
import type { Hold, ReleaseResult, Turn } from './hold.ts';
import { callLimitMs, type LockParts } from './parts.ts';
import { releaseInBackground } from './release.ts';

const releasedNow: Promise<ReleaseResult> = Promise.resolve('released');
const takenNow: Promise<ReleaseResult> = Promise.resolve('taken');

/** One handle lets go; the last one frees the lock. Never rejects. */
export function leaveHold(parts: LockParts, hold: Hold): Promise<ReleaseResult> {
  const { turn } = hold;
  const nowMonoMs = parts.runtime.monoMs();
  if (!hold.isHeld(nowMonoMs)) {
    if (hold.lossReason === 'taken') return takenNow;
    return endTurn(parts, hold, parts.store.release(turn.attempt), nowMonoMs);
  }
  if (hold.handles > 1) {
    hold.handles--;
    return releasedNow;
  }
  hold.state = 'released';
  const { line } = turn;
  parts.advice.note(turn, nowMonoMs - hold.startMonoMs, line?.contended ?? false);
  if (line?.mayHandOver(turn, nowMonoMs)) {
    tellReleased(parts, hold, 'released');
    line.handOver(turn, nowMonoMs);
    return releasedNow;
  }
  closeTurn(parts, turn);
  const answer = line?.passOn(turn, nowMonoMs) ?? parts.store.release(turn.attempt);
  return endTurn(parts, hold, answer, nowMonoMs);
}

/** Nothing is renewed from here on, whatever is still under way. */
export function closeTurn(parts: LockParts, turn: Turn): void {
  turn.over = true;
  parts.renewal.forget(turn);
}

function endTurn(
  parts: LockParts,
  hold: Hold,
  call: Promise<LockAnswer>,
  nowMonoMs: number,
): Promise<ReleaseResult> {
  return new Promise((resolve) => {
    const ending = new Ending(parts, hold, call, resolve);
    parts.calls.set(ending, nowMonoMs + callLimitMs);
    call.then(
      (answer) => ending.answered(answer),
      (error: unknown) => ending.failed(error),
    );
  });
}

/** A release under way. */
class Ending implements Due {
  dueMonoMs = 0;
  dueIndex = -1;
  private readonly parts: LockParts;
  private readonly hold: Hold;
  private readonly call: Promise<LockAnswer>;
  private resolve: ((result: ReleaseResult) => void) | undefined;

  constructor(
    parts: LockParts,
    hold: Hold,
    call: Promise<LockAnswer>,
    resolve: (result: ReleaseResult) => void,
  ) {
    this.parts = parts;
    this.hold = hold;
    this.call = call;
    this.resolve = resolve;
  }

  answered(answer: LockAnswer): void {
    const late = this.hold.state === 'lost'; // Then "ours" only means: nobody was let in meanwhile.
    const result = answer === 'ours' ? (late ? 'expired' : 'released') : answer;
    if (this.resolve !== undefined) tellReleased(this.parts, this.hold, result);
    this.settle(result);
  }

  failed(error: unknown): void {
    if (this.resolve === undefined) return;
    this.tellFailed(error);
    releaseInBackground(this.parts.runtime, this.parts.store, this.hold.turn.attempt);
    this.settle('expired');
  }

  onDue(): void {
    this.tellFailed(new Error(`no answer to a release within ${callLimitMs} ms`));
    const { runtime, store } = this.parts;
    releaseInBackground(runtime, store, this.hold.turn.attempt, this.call);
    this.settle('expired');
  }

  private tellFailed(error: unknown): void {
    const { name } = this.hold.turn.attempt;
    emit('lock', { type: 'release-failed', lock: name, store: this.parts.store.name, error });
  }

  private settle(result: ReleaseResult): void {
    const { resolve } = this;
    if (resolve === undefined) return;
    this.resolve = undefined;
    this.parts.calls.remove(this);
    const { turn } = this.hold;
    resolve(result);
    const { line } = turn;
    if (line === undefined || line.turn !== turn) return;
    line.turn = undefined;
    line.proceed();
  }
}

function tellReleased(parts: LockParts, hold: Hold, result: ReleaseResult): void {
  if (!listened('lock')) return;
  const { name } = hold.turn.attempt;
  const holdMs = parts.runtime.monoMs() - hold.startMonoMs;
  emit('lock', { type: 'released', lock: name, store: parts.store.name, holdMs, result });
}
