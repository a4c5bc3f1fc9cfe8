/** Renews one claim while its work runs. */
import type { Due, DueHeap } from '../../runtime/due-heap.ts';

/** Three chances in each lease. */
const beatsPerLease = 3;

/** Beats until it is stopped, or told that the claim is another's. One clock serves all of a store. */
export class Heartbeat implements Due {
  dueMonoMs = 0;
  dueIndex = -1;
  private readonly clock: DueHeap;
  private readonly everyMs: number;
  private readonly renew: () => Promise<boolean>;
  private stopped = false;

  /** @param renew false: taken over, there is nothing to renew any more */
  constructor(clock: DueHeap, leaseMs: number, renew: () => Promise<boolean>) {
    this.clock = clock;
    this.everyMs = leaseMs / beatsPerLease;
    this.renew = renew;
    this.again();
  }

  stop(): void {
    this.stopped = true;
    this.clock.remove(this);
  }

  onDue(): void {
    this.renew().then(
      (ours) => ours && this.again(),
      () => this.again(), // A server that is away may be back before the lease is over.
    );
  }

  private again(): void {
    if (!this.stopped) this.clock.set(this, this.clock.nowMs() + this.everyMs);
  }
}
