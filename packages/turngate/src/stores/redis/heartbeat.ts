/** Renews one claim while its work runs. */
import type { Runtime, Timer } from '../../runtime/runtime.ts';

/** Three chances in each lease. */
const beatsPerLease = 3;

/** Beats until it is stopped, or told that the claim is another's. */
export class Heartbeat {
  private readonly runtime: Runtime;
  private readonly everyMs: number;
  private readonly renew: () => Promise<boolean>;
  private timer: Timer;
  private stopped = false;

  /** @param renew false: taken over, there is nothing to renew any more */
  constructor(runtime: Runtime, leaseMs: number, renew: () => Promise<boolean>) {
    this.runtime = runtime;
    this.everyMs = leaseMs / beatsPerLease;
    this.renew = renew;
    this.timer = this.next();
  }

  stop(): void {
    this.stopped = true;
    this.timer.cancel();
  }

  private next(): Timer {
    return this.runtime.timer(this.everyMs, false, () => {
      this.renew().then(
        (ours) => ours && this.again(),
        () => this.again(), // A server that is away may be back before the lease is over.
      );
    });
  }

  private again(): void {
    if (!this.stopped) this.timer = this.next();
  }
}
