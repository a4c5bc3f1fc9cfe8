/** The life of a consumer: what runs, how it stops, and that its loss is told. */
import { whenAborted } from '../runtime/abort.ts';
import { emit } from '../runtime/events.ts';

/** Why a consumer ended. */
export type ConsumerEnd =
  | { readonly kind: 'stopped' }
  /** The broker or the connection ended it: open a new channel and consume again. */
  | { readonly kind: 'lost'; readonly error: unknown };

/** A running consumer. */
export interface Consuming {
  /**
   * Takes no more messages, waits for those that run and for their acknowledgements to be handed to
   * the client. What was delivered but not begun goes back. Leave the connection open until then.
   */
  stop(): Promise<void>;
  /** Resolves once, never rejects: after `stop`, or when the consumer was lost. */
  readonly ended: Promise<ConsumerEnd>;
}

/** Keeps the set of running deliveries and the one end of a consumer. */
export class ConsumerLife implements Consuming {
  readonly ended: Promise<ConsumerEnd>;
  /** Aborted as soon as the consumer stops or is lost: ends back-off sleeps. */
  readonly signal: AbortSignal;
  private readonly source: string;
  private readonly controller = new AbortController();
  private readonly running = new Set<Promise<void>>();
  private readonly onStop: () => Promise<void>;
  private stopping: Promise<void> | undefined;
  private resolveEnd!: (end: ConsumerEnd) => void;

  /** `onStop` asks the broker for no more deliveries. */
  constructor(source: string, signal: AbortSignal | undefined, onStop: () => Promise<void>) {
    this.source = source;
    this.signal = this.controller.signal;
    this.onStop = onStop;
    this.ended = new Promise((resolve) => {
      this.resolveEnd = resolve;
    });
    if (signal === undefined) return;
    // In a later turn: the caller has not even got this consumer yet.
    void Promise.resolve().then(() => {
      void this.ended.then(whenAborted(signal, () => void this.stop()));
    });
  }

  get over(): boolean {
    return this.signal.aborted;
  }

  /** Tracks work that must not throw. */
  track(work: Promise<void>): void {
    const tracked: Promise<void> = work
      .catch((error: unknown) => this.lose(error))
      .finally(() => this.running.delete(tracked));
    this.running.add(tracked);
  }

  get runningCount(): number {
    return this.running.size;
  }

  /** Resolves when one of the running ones has ended. */
  async oneEnded(): Promise<void> {
    if (this.running.size > 0) await Promise.race(this.running);
  }

  stop(): Promise<void> {
    this.stopping ??= this.stopOnce();
    return this.stopping;
  }

  /** The consumer is gone; what runs goes on and finds its acknowledgement void. */
  lose(error: unknown): void {
    if (this.over) return;
    this.controller.abort();
    emit('message', { type: 'consumer-lost', source: this.source, error });
    this.resolveEnd({ kind: 'lost', error });
  }

  private async stopOnce(): Promise<void> {
    const wasOver = this.over;
    this.controller.abort();
    // A broker that is away cannot be asked; what runs is waited for all the same.
    if (!wasOver) await this.onStop().catch(() => undefined);
    while (this.running.size > 0) await Promise.all(this.running);
    this.resolveEnd({ kind: 'stopped' });
  }
}
