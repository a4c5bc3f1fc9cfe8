/** Work that comes again: one round at a time, jittered pauses in between, until it is stopped. */
import type { Runtime, Timer } from './runtime.ts';

/** What is done in a round, and how often. */
export interface RoundsParts {
  readonly runtime: Runtime;
  /** Pause between two rounds; each is up to a quarter shorter or longer. */
  readonly everyMs: number;
  /** Asks `stopped` before it takes up more; returns how much it has done. */
  readonly round: (stopped: () => boolean) => Promise<number>;
  /** Hears of a round that failed by itself; the next one comes all the same. */
  readonly onFailure: (error: unknown) => void;
}

/** Starts with a pause. */
export class Rounds {
  private readonly parts: RoundsParts;
  private timer: Timer | undefined;
  private running: Promise<number> | undefined;
  private stopped = false;

  constructor(parts: RoundsParts) {
    this.parts = parts;
    this.arm();
  }

  /** A round now, or the one that is under way. */
  now(): Promise<number> {
    this.running ??= this.parts
      .round(() => this.stopped)
      .finally(() => {
        this.running = undefined;
      });
    return this.running;
  }

  /** Takes up nothing more and waits for the round under way. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    await this.running?.catch(() => undefined);
  }

  private arm(): void {
    const { runtime, everyMs, onFailure } = this.parts;
    const delayMs = everyMs * (0.75 + runtime.random() / 2);
    // Keeps the process alive: a worker that does only this has nothing else to live for.
    this.timer = runtime.timer(delayMs, true, () => {
      void this.now()
        .catch(onFailure)
        .finally(() => {
          if (!this.stopped) this.arm();
        });
    });
  }
}
