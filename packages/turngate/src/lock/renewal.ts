/**
 * Renewal of all turns of one lock client with one timer: those that are due travel in batches. A
 * turn that cannot be renewed is tried again until its local deadline, then lost; an answer "not
 * ours" is lost at once and never re-acquired in silence.
 */
import type { LockAnswer, LockStore } from '../contract/lock-store.ts';
import { type Due, DueHeap } from '../runtime/due-heap.ts';
import { emit } from '../runtime/events.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { beliefMs, type Turn } from './hold.ts';
import { leaveSlot, RenewalRing } from './renewal-ring.ts';

/** Watches turns: renews those that asked for it and tells loss at the deadline. */
export class Renewal {
  /** How many turns are watched. */
  size = 0;
  /** Turns whose renewal comes next, which is nearly all of them; by the exponent of the slot. */
  private readonly rings: RenewalRing[] = [];
  /** Turns whose end may come next: told to the millisecond. */
  private readonly ends: DueHeap<Turn>;
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
    this.ends = new DueHeap(runtime, false, () => this.drainEnds());
    this.byOwner = store.onLoss && new Map();
    store.onLoss?.(({ owner }) => this.byOwner?.get(owner)?.hold.lose('session-ended'));
  }

  /** Watches a turn, or a turn whose holder has changed. */
  watch(turn: Turn): void {
    if (!turn.watched) {
      turn.watched = true;
      this.size++;
      this.byOwner?.set(turn.attempt.owner, turn);
      if (turn.renew) turn.renewMonoMs = firstRenewalMs(turn);
    }
    this.schedule(turn);
  }

  forget(turn: Turn): void {
    if (!turn.watched) return;
    turn.watched = false;
    this.size--;
    this.byOwner?.delete(turn.attempt.owner);
    leaveSlot(turn);
    this.ends.remove(turn);
  }

  private schedule(turn: Turn): void {
    leaveSlot(turn);
    const endMonoMs = endOf(turn);
    const ring = this.ringOf(turn.attempt.leaseMs);
    // In doubt each try counts, and an old grant is due at once: these are no slot late.
    const urgent = turn.doubtful || turn.renewMonoMs <= turn.startMonoMs;
    if (!urgent && turn.renewMonoMs + ring.slotMs < endMonoMs) {
      this.ends.remove(turn);
      ring.add(turn);
    } else {
      this.ends.set(turn, Math.min(turn.renewMonoMs, endMonoMs));
    }
  }

  /**
   * Slots as long as the power of two at or below an eighth of the lease: few kinds however many
   * leases there are. Waking up and sending cost more than renewing, so neighbours share both; who is
   * an eighth late still has half of its lease for further tries.
   */
  private ringOf(leaseMs: number): RenewalRing {
    const exponent = 31 - Math.clz32(Math.max(1, leaseMs / 8));
    let ring = this.rings[exponent];
    if (ring === undefined) {
      const renew = (due: readonly Turn[], nowMs: number): void => this.renewDue(due, nowMs);
      ring = new RenewalRing(2 ** exponent, this.calls, renew);
      this.rings[exponent] = ring;
    }
    return ring;
  }

  private drainEnds(): void {
    const nowMs = this.runtime.monoMs();
    const due: Turn[] = [];
    for (let turn = this.ends.first(); turn !== undefined; turn = this.ends.first()) {
      if (turn.dueMonoMs > nowMs) break;
      this.ends.remove(turn);
      due.push(turn);
    }
    this.renewDue(due, nowMs);
  }

  /** Turns whose renewal or whose end is due; they are in neither place any more. */
  private renewDue(turns: readonly Turn[], nowMs: number): void {
    const due = turns.filter((turn) => !turn.over && turn.hold.isHeld(nowMs));
    const { renewMax = 128 } = this.store; // By default one batch is short on any server.
    for (let i = 0; i < due.length; i += renewMax) this.renew(due.slice(i, i + renewMax));
  }

  /** Never throws: it runs from a timer. */
  private renew(batch: readonly Turn[]): void {
    const sentMonoMs = this.runtime.monoMs();
    const sentWallMs = this.runtime.wallMs();
    let limitMs = Number.POSITIVE_INFINITY;
    for (const { attempt } of batch) limitMs = Math.min(limitMs, attempt.leaseMs / 3);
    for (const turn of batch) {
      turn.renewMonoMs = Number.POSITIVE_INFINITY;
      // Most are over only after the limit of this call, which looks after them until then.
      if (endOf(turn) < sentMonoMs + limitMs) this.schedule(turn);
    }
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
    const periodMs = (turn.attempt.leaseMs / 3) * (1 - this.runtime.random() / 8);
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

function endOf({ deadlineMonoMs, hold }: Turn): number {
  return Math.min(deadlineMonoMs, hold.endMonoMs);
}

/** A third into the lease: what is shorter never causes a command. */
function firstRenewalMs({ attempt, deadlineMonoMs, startMonoMs }: Turn): number {
  const { leaseMs } = attempt;
  const sinceMonoMs = deadlineMonoMs - beliefMs(leaseMs);
  // A grant made while we waited may be old: then at once.
  const old = startMonoMs - sinceMonoMs > leaseMs / 12;
  return old ? startMonoMs : sinceMonoMs + leaseMs / 3;
}
