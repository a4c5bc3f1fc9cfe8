/** The leases of the attempts in this process: one timer and one statement renew them all. */
import type { HoldAnswer, StagedHold } from '../../contract/staged-store.ts';
import { TurngateError } from '../../core/errors.ts';
import type { RecordId } from '../../core/record-id.ts';
import type { Runtime, Timer } from '../../runtime/runtime.ts';

/** An attempt's hold with what this process believes about it. */
export class LiveHold implements StagedHold {
  readonly id: RecordId;
  readonly owner: string;
  readonly attempt: number;
  readonly leaseMs: number;
  /** Counted from before the command was sent, so belief ends before the lease does. */
  endMonoMs: number;
  private readonly controller = new AbortController();
  private readonly leases: Leases;

  constructor(leases: Leases, hold: StagedHold, leaseMs: number, sentMonoMs: number) {
    this.leases = leases;
    this.id = hold.id;
    this.owner = hold.owner;
    this.attempt = hold.attempt;
    this.leaseMs = leaseMs;
    this.endMonoMs = sentMonoMs + leaseMs;
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get lost(): boolean {
    return this.controller.signal.aborted;
  }

  lose(): TurngateError {
    if (!this.lost) this.controller.abort(this.lostError());
    return this.lostError();
  }

  /** Before an effect: held by our own clock, or asked. @throws LEASE_LOST, STORE_UNAVAILABLE */
  async ensure(): Promise<void> {
    if (!this.lost && this.leases.monoMs() < this.endMonoMs) return;
    if (!this.lost) await this.leases.renewNow([this]);
    if (this.lost) throw this.lostError();
  }

  private lostError(): TurngateError {
    const message = `${this.id.operation}: attempt ${this.attempt} was taken over by another`;
    return new TurngateError('LEASE_LOST', message, { retryAfterMs: 1_000 });
  }
}

/** Renews while held. */
export class Leases {
  private readonly holds = new Set<LiveHold>();
  private readonly runtime: Runtime;
  private readonly renew: (holds: readonly StagedHold[]) => Promise<readonly HoldAnswer[]>;
  private timer: Timer | undefined;
  private timerAtMonoMs = Number.POSITIVE_INFINITY;

  constructor(
    runtime: Runtime,
    renew: (holds: readonly StagedHold[]) => Promise<readonly HoldAnswer[]>,
  ) {
    this.runtime = runtime;
    this.renew = renew;
  }

  monoMs(): number {
    return this.runtime.monoMs();
  }

  add(hold: LiveHold): void {
    this.holds.add(hold);
    this.arm(hold.leaseMs / 3);
  }

  remove(hold: LiveHold): void {
    this.holds.delete(hold);
    if (this.holds.size > 0) return;
    this.timer?.cancel();
    this.timer = undefined;
    this.timerAtMonoMs = Number.POSITIVE_INFINITY;
  }

  async renewNow(holds: readonly LiveHold[]): Promise<void> {
    const sentMonoMs = this.monoMs();
    const answers = await this.renew(holds);
    for (const [i, hold] of holds.entries()) {
      if (answers[i] === 'ours') hold.endMonoMs = sentMonoMs + hold.leaseMs;
      else hold.lose();
    }
  }

  private arm(delayMs: number): void {
    const atMonoMs = this.monoMs() + delayMs;
    if (this.timer !== undefined && this.timerAtMonoMs <= atMonoMs) return;
    this.timer?.cancel();
    this.timerAtMonoMs = atMonoMs;
    this.timer = this.runtime.timer(delayMs, false, () => void this.tick());
  }

  private async tick(): Promise<void> {
    this.timer = undefined;
    this.timerAtMonoMs = Number.POSITIVE_INFINITY;
    const nowMs = this.monoMs();
    // A little early rather than one round late: what is due before half of the pause goes along.
    const due = [...this.holds].filter(
      ({ lost, endMonoMs, leaseMs }) => !lost && endMonoMs - nowMs <= leaseMs * 0.75,
    );
    try {
      if (due.length > 0) await this.renewNow(due);
    } catch {
      // The store is away: a hold is lost when its time is over, and tried again until then.
      for (const hold of due) if (this.monoMs() >= hold.endMonoMs) hold.lose();
    }
    let delayMs = Number.POSITIVE_INFINITY;
    for (const { lost, endMonoMs, leaseMs } of this.holds) {
      if (lost) continue;
      const leftMs = endMonoMs - this.monoMs();
      delayMs = Math.min(delayMs, Math.max(leaseMs / 20, leftMs - (leaseMs * 2) / 3));
    }
    if (delayMs !== Number.POSITIVE_INFINITY) this.arm(delayMs);
  }
}
