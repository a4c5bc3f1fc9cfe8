/** Calls of one operation in this process: one flight per key, which its repeats share. */

import { type ErrorCode, isTurngateError, TurngateError } from '../core/errors.ts';
import { recordIdText } from '../core/record-id.ts';
import { ChurnMap } from '../runtime/churn-map.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { abortedError, type Cut, waitFor } from '../runtime/wait.ts';
import { answerRepeat, checkPayload, inProgress, tell } from './answers.ts';
import type { Finished } from './attempt-loop.ts';
import { isRefusal, type OperationPolicy, type Request } from './declaration.ts';
import { type Outcome, outcomeOf } from './outcome.ts';
import type { OutcomeMemory } from './outcome-memory.ts';

/** Options of one call. */
export interface CallOptions {
  /**
   * Ends this caller's waiting with ABORTED. Work that has begun goes on and is recorded: an aborted
   * client is no reason to undo a payment.
   */
  readonly signal?: AbortSignal;
}

/** What flights need to know of their operation. */
export interface FlightParts<Input> {
  readonly policy: OperationPolicy;
  readonly runtime: Runtime;
  readonly closing: AbortSignal;
  readonly memory: OutcomeMemory | undefined;
  /** Brings a request to its finished record, or throws what the caller has to be told. */
  readonly bring: (request: Request, input: Input) => Promise<Finished>;
  /** Told when a flight failed, instead of the event that says the key is free again. */
  readonly onFailed?: (request: Request, error: unknown) => void;
}

interface Flight {
  readonly fingerprint: string;
  readonly startedMonoMs: number;
  /** Order of arrivals and starts in this process. */
  readonly order: number;
  readonly finished: Promise<Finished>;
}

/** The flights of one declared operation. */
export class Flights<Input, Value> {
  private readonly parts: FlightParts<Input>;
  private readonly flights = new ChurnMap<Flight>();
  private order = 0;

  constructor(parts: FlightParts<Input>) {
    this.parts = parts;
  }

  /** How many keys are being worked on in this process. */
  get inFlight(): number {
    return this.flights.size;
  }

  /** Resolves when nothing is in flight any more. */
  async idle(): Promise<void> {
    while (this.flights.size > 0) {
      await Promise.allSettled(this.flights.entries().map(([, flight]) => flight.finished));
    }
  }

  /** Does the work once, or answers with what the first call got. */
  async call(request: Request, input: Input, options: CallOptions = {}): Promise<Outcome<Value>> {
    const { policy, runtime, memory } = this.parts;
    const { signal } = options;
    if (signal?.aborted) throw abortedError(signal);
    const key = recordIdText(request.id);
    const arrived = ++this.order;
    const startMonoMs = runtime.monoMs();
    for (;;) {
      const remembered = memory?.get(key);
      if (remembered !== undefined) return answerRepeat(policy, request, remembered, 'memory');
      const running = this.flights.get(key);
      if (running === undefined) return await this.lead(request, input, signal);
      checkPayload(request, running.fingerprint, 'flight');
      const leftMs = startMonoMs + policy.waitMs - runtime.monoMs();
      const finished = await this.follow(running, request, arrived, leftMs, signal);
      if (finished !== undefined) return answerRepeat(policy, request, finished.record, 'flight');
    }
  }

  /** Is this key being worked on here? */
  has(request: Request): boolean {
    return this.flights.has(recordIdText(request.id));
  }

  /** Nothing when this key is not being worked on here. @throws REQUEST_IN_PROGRESS, IDEMPOTENCY_KEY_REUSED */
  refuseRunning(request: Request): void {
    const running = this.flights.get(recordIdText(request.id));
    if (running === undefined) return;
    checkPayload(request, running.fingerprint, 'flight');
    const ageMs = this.parts.runtime.monoMs() - running.startedMonoMs;
    throw inProgress(this.parts.policy, request, 'flight', ageMs);
  }

  /** @throws GATE_CLOSED */
  refuseClosed(): void {
    if (this.parts.closing.aborted) throw new TurngateError('GATE_CLOSED', 'the gate is closed');
  }

  private async lead(
    request: Request,
    input: Input,
    signal: AbortSignal | undefined,
  ): Promise<Outcome<Value>> {
    const { policy, runtime } = this.parts;
    this.refuseClosed();
    const startedMonoMs = runtime.monoMs();
    const finished = this.start(request, () => this.parts.bring(request, input));
    const { record, ran } =
      signal === undefined
        ? await finished
        : await waitFor(runtime, finished, {
            limitMs: undefined,
            onCut: () => abortedError(signal),
            signal,
          });
    if (!ran) return answerRepeat(policy, request, record, 'record');
    return this.first(request, record, startedMonoMs);
  }

  /** Starts a flight for a key that has none; repeats share it. */
  start(request: Request, run: () => Promise<Finished>): Promise<Finished> {
    const key = recordIdText(request.id);
    const startedMonoMs = this.parts.runtime.monoMs();
    const finished = this.fly(key, request, run);
    const { fingerprint } = request;
    this.flights.set(key, { fingerprint, startedMonoMs, order: ++this.order, finished });
    return finished;
  }

  /** The flight itself: goes on when its first caller has left. */
  private async fly(
    key: string,
    request: Request,
    run: () => Promise<Finished>,
  ): Promise<Finished> {
    tell(request, { type: 'started' });
    try {
      const finished = await run();
      this.parts.memory?.add(key, finished.record);
      return finished;
    } catch (error) {
      const { onFailed } = this.parts;
      if (onFailed !== undefined) onFailed(request, error);
      else if (!isTold(error)) tell(request, { type: 'released', error });
      throw error;
    } finally {
      this.flights.delete(key);
      tell(request, { type: 'ended' });
    }
  }

  /**
   * Waits for somebody else's flight. Undefined: it failed and had begun before this caller came, so
   * the caller tries for itself. A flight begun after that speaks for this caller too: with n
   * callers waiting on work that fails, it runs at most twice, not n times.
   */
  private async follow(
    flight: Flight,
    request: Request,
    arrived: number,
    leftMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Finished | undefined> {
    const { policy, runtime } = this.parts;
    const ageMs = (): number => runtime.monoMs() - flight.startedMonoMs;
    if (policy.inFlight === 'reject' || leftMs <= 0) {
      throw inProgress(policy, request, 'flight', ageMs());
    }
    tell(request, { type: 'waiting', from: 'flight' });
    let cutError: Error | undefined;
    const onCut = (cut: Cut): Error => {
      cutError =
        cut === 'abort'
          ? abortedError(signal as AbortSignal)
          : inProgress(policy, request, 'flight', ageMs());
      return cutError;
    };
    try {
      return await waitFor(runtime, flight.finished, { limitMs: leftMs, onCut, signal });
    } catch (error) {
      if (error === cutError || flight.order > arrived || settled(error)) throw error;
      return undefined;
    }
  }

  /** The outcome of the call that did the work. */
  first(request: Request, record: Finished['record'], startedMonoMs: number): Outcome<Value> {
    const durationMs = this.parts.runtime.monoMs() - startedMonoMs;
    try {
      const outcome = outcomeOf<Value>(record, false);
      tell(request, { type: 'first', durationMs });
      return outcome;
    } catch (error) {
      if (isRefusal(error)) tell(request, { type: 'refused', refusal: error.refusal.code });
      throw error;
    }
  }
}

const sharedCodes: readonly ErrorCode[] = [
  'OUTCOME_UNKNOWN',
  'GATE_CLOSED',
  'IDEMPOTENCY_KEY_REUSED',
];

/** Errors that trying again at once cannot change. */
function settled(error: unknown): boolean {
  return isTurngateError(error) && sharedCodes.includes(error.code);
}

const toldCodes: readonly ErrorCode[] = [
  'IDEMPOTENCY_KEY_REUSED',
  'REQUEST_IN_PROGRESS',
  'OUTCOME_UNKNOWN',
];

/** Errors that have an event of their own and do not mean that the key is free. */
function isTold(error: unknown): boolean {
  return isTurngateError(error) && toldCodes.includes(error.code);
}
