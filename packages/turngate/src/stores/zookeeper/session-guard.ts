/**
 * Tells loss in time. The server may end a session as soon as its timeout has passed without a word
 * of ours; a holder that has had no answer for two thirds of it must assume the worst. The client
 * would not notice a silent network at all.
 */
import type { Lapses } from '../../runtime/lapses.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Session } from './session.ts';

/** Watches one session while it holds locks. */
export class SessionGuard {
  private readonly runtime: Runtime;
  private readonly lapses: Lapses;
  private readonly session: Session;
  private readonly holds: () => boolean;
  private readonly onSuspect: () => void;
  private beating = false;
  private on = false;

  constructor(
    runtime: Runtime,
    lapses: Lapses,
    session: Session,
    told: { holds: () => boolean; onSuspect: () => void },
  ) {
    this.runtime = runtime;
    this.lapses = lapses;
    this.session = session;
    this.holds = told.holds;
    this.onSuspect = told.onSuspect;
  }

  /** Until when the holders of this session may believe. */
  get trustedUntilMonoMs(): number {
    return this.session.lastHeardMonoMs + (this.session.timeoutMs * 2) / 3;
  }

  start(): void {
    if (this.on) return;
    this.on = true;
    this.look();
  }

  private look(): void {
    const { session } = this;
    if (session.dead || !this.holds()) {
      this.on = false;
      return;
    }
    const nowMs = this.runtime.monoMs();
    if (nowMs >= this.trustedUntilMonoMs) {
      this.on = false;
      this.onSuspect();
      return;
    }
    // A third of the timeout of silence: ask something, if only to hear an answer.
    if (nowMs - session.lastHeardMonoMs >= session.timeoutMs / 3) this.beat();
    const nextMs = Math.min(nowMs + session.timeoutMs / 6, this.trustedUntilMonoMs);
    this.lapses.set(this, nextMs, () => this.look());
  }

  private beat(): void {
    if (this.beating || !this.session.connected) return;
    this.beating = true;
    const end = (): void => {
      this.beating = false;
    };
    this.session.exists('/').then(end, end);
  }
}
