/**
 * Renewal of all turns of one lock client with one timer: those that are due travel in batches. A
 * turn that cannot be renewed is tried again until its local deadline, then lost; an answer "not
 * ours" is lost at once and never re-acquired in silence.
 */
import type { LockAnswer, LockStore } from '../contract/lock-store.ts';
import { emit } from '../runtime/events.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type Due, DueHeap } from './due-heap.ts';
import { beliefMs, type Turn } from './hold.ts';

const tickMax = 512; // Keeps one tick short in this process; the rest follows in the next one.

/** Watches turns: renews those that asked for it and tells loss at the deadline. */
export class Renewal {
  private readonly turns: DueHeap<Turn>;
  private readonly calls: DueHeap;
  /** Where the store tells losses: whom they concern. */
  private readonly byOwner: Map<string, Turn> | undefined;
  private readonly runtime: Runtime;
  private readonly store: LockStore;

  constructor(runtime: Runtime, store: LockStore, calls: DueHeap) {
    this.runtime = runtime;
    this.store = store;
    this.calls = calls;
    // Keeps no process alive: a held lock must not.
    this.turns = new DueHeap(runtime, false, () => this.tick());
    this.byOwner = store.onLoss && new Map();
    store.onLoss?.(({ owner }) => this.byOwner?.get(owner)?.hold.lose('session-ended'));
  }

  /** How many turns are watched. */
  get size(): number {
    return this.turns.size;
  }

  /** Watches a turn, or a turn whose holder has changed. */
  watch(turn: Turn): void {
    if (turn.dueIndex < 0 && turn.renew) {
      const { leaseMs } = turn.attempt;
      const sinceMonoMs = turn.deadlineMonoMs - beliefMs(leaseMs);
      // A grant made while we waited may be old: then at once.
      const old = turn.startMonoMs - sinceMonoMs > leaseMs / 12;
      turn.renewMonoMs = old ? turn.startMonoMs : sinceMonoMs + leaseMs / 3;
    }
    this.byOwner?.set(turn.attempt.owner, turn);
    this.schedule(turn);
  }

  forget(turn: Turn): void {
    this.byOwner?.delete(turn.attempt.owner);
    this.turns.remove(turn);
  }

  private schedule(turn: Turn): void {
    // A little late rather than early, so that neighbours share a batch: what is shorter than a
    // third of its lease never causes a command.
    const renewMs = turn.renewMonoMs + turn.attempt.leaseMs / 32;
    this.turns.set(turn, Math.min(renewMs, turn.deadlineMonoMs, turn.hold.endMonoMs));
  }

  private tick(): void {
    const nowMs = this.runtime.monoMs();
    const due: Turn[] = [];
    const { renewMax = 128 } = this.store; // By default one batch is short on any server.
    while (due.length < Math.max(tickMax, renewMax)) {
      const turn = this.turns.first();
      if (turn === undefined) break;
      if (turn.dueMonoMs > nowMs && turn.renewMonoMs > nowMs) break;
      if (!turn.hold.isHeld()) {
        this.turns.remove(turn);
      } else if (turn.renewMonoMs <= nowMs) {
        turn.renewMonoMs = Number.POSITIVE_INFINITY;
        this.schedule(turn);
        due.push(turn);
      } else {
        this.turns.set(turn, nowMs + 1); // The timer came a moment early.
      }
    }
    for (let i = 0; i < due.length; i += renewMax) this.renew(due.slice(i, i + renewMax));
  }

  /** Never throws: it runs from a timer. */
  private renew(batch: readonly Turn[]): void {
    const sentMonoMs = this.runtime.monoMs();
    const sentWallMs = this.runtime.wallMs();
    let limitMs = Number.POSITIVE_INFINITY;
    for (const { attempt } of batch) limitMs = Math.min(limitMs, attempt.leaseMs / 3);
    let settled = false;
    const failed = (error: unknown): void => {
      if (settled) return;
      settled = true;
      this.calls.remove(limit);
      for (const turn of batch) this.retrySoon(turn, error);
    };
    const late = `no answer to a renewal within ${Math.round(limitMs)} ms`;
    const limit: Due = { dueMonoMs: 0, dueIndex: -1, onDue: () => failed(new Error(late)) };
    this.calls.set(limit, sentMonoMs + limitMs);
    let call: Promise<readonly LockAnswer[]>;
    try {
      call = this.store.renew(batch.map(({ attempt }) => attempt));
    } catch (error) {
      failed(error);
      return;
    }
    call.then((answers) => {
      if (settled) return;
      settled = true;
      this.calls.remove(limit);
      batch.forEach((turn, i) => {
        if (this.isOurs(turn, answers[i])) this.renewed(turn, sentMonoMs, sentWallMs);
      });
    }, failed);
  }

  private isOurs(turn: Turn, answer: LockAnswer | undefined): boolean {
    if (turn.over) return false; // Released meanwhile: its answer means nothing.
    if (answer !== 'ours') turn.hold.lose(answer === 'taken' ? 'taken' : 'lease-ended');
    return answer === 'ours';
  }

  private renewed(turn: Turn, sentMonoMs: number, sentWallMs: number): void {
    turn.extend(sentMonoMs, sentWallMs);
    turn.doubtful = false;
    // Jitter pulls apart what was taken at once.
    const periodMs = (turn.attempt.leaseMs / 3) * (1 - this.runtime.random() / 4);
    turn.renewMonoMs = sentMonoMs + periodMs;
    this.schedule(turn);
  }

  /** A failed renewal is not a loss: try again soon, the deadline decides. */
  private retrySoon(turn: Turn, error: unknown): void {
    if (turn.over) return;
    const { leaseMs, name } = turn.attempt;
    turn.doubtful = true;
    turn.renewMonoMs = this.runtime.monoMs() + leaseMs / 12;
    this.schedule(turn);
    emit('lock', { type: 'renewal-failed', lock: name, store: this.store.name, error });
  }
}
