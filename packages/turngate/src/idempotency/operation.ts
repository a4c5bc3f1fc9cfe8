/** A declared operation that can be called: one flight per key in this process, then the store. */
import type { Claim } from '../contract/record-store.ts';
import { type ErrorCode, isTurngateError, TurngateError } from '../core/errors.ts';
import { recordIdText } from '../core/record-id.ts';
import { abortedError, backoffMs, type Cut, sleep, waitFor } from '../runtime/wait.ts';
import { answerRepeat, checkPayload, inProgress, keyReused, tell } from './answers.ts';
import { bringToRecord, type Finished, type OperationParts } from './attempt-loop.ts';
import { isRefusal, type Request, requestOf } from './declaration.ts';
import { type Outcome, outcomeOf } from './outcome.ts';
import type { OutcomeMemory } from './outcome-memory.ts';
import { workOf } from './work.ts';

/** Options of one call. */
export interface CallOptions {
  /**
   * Ends this caller's waiting with ABORTED. Work that has begun goes on and is recorded: an aborted
   * client is no reason to undo a payment.
   */
  readonly signal?: AbortSignal;
}

interface Flight {
  readonly fingerprint: string;
  readonly startedMonoMs: number;
  /** Order of arrivals and starts in this process. */
  readonly order: number;
  readonly finished: Promise<Finished>;
}

const withinPollRange = { baseMs: 5, capMs: 100 };

/** Runs the calls of one declared operation. */
export class OperationRunner<Tx, Input, Value> {
  private readonly parts: OperationParts<Tx, Input, Value>;
  private readonly memory: OutcomeMemory | undefined;
  private readonly flights = new Map<string, Flight>();
  private order = 0;

  constructor(parts: OperationParts<Tx, Input, Value>, memory: OutcomeMemory | undefined) {
    this.parts = parts;
    this.memory = memory;
  }

  /** How many keys are being worked on in this process. */
  get inFlight(): number {
    return this.flights.size;
  }

  /** Resolves when nothing is in flight any more. */
  async idle(): Promise<void> {
    while (this.flights.size > 0) {
      await Promise.allSettled([...this.flights.values()].map((flight) => flight.finished));
    }
  }

  /** Does the work once, or answers with what the first call got. */
  async call(input: Input, options: CallOptions = {}): Promise<Outcome<Value>> {
    const { declaration, policy, runtime } = this.parts;
    const request = requestOf(declaration, input);
    const { signal } = options;
    if (signal?.aborted) throw abortedError(signal);
    const key = recordIdText(request.id);
    const arrived = ++this.order;
    const startMonoMs = runtime.monoMs();
    for (;;) {
      const remembered = this.memory?.get(key);
      if (remembered !== undefined) return answerRepeat(policy, request, remembered, 'memory');
      const running = this.flights.get(key);
      if (running === undefined) return await this.lead(key, request, input, signal);
      checkPayload(request, running.fingerprint, 'flight');
      const leftMs = startMonoMs + policy.waitMs - runtime.monoMs();
      const finished = await this.follow(running, request, arrived, leftMs, signal);
      if (finished !== undefined) return answerRepeat(policy, request, finished.record, 'flight');
    }
  }

  /** Claims, works and records inside a transaction the caller owns and will commit. */
  async within(tx: Tx, input: Input): Promise<Outcome<Value>> {
    const { declaration, policy, store, runtime, closing, nextOwner } = this.parts;
    const request = requestOf(declaration, input);
    const remembered = this.memory?.get(recordIdText(request.id));
    if (remembered !== undefined) return answerRepeat(policy, request, remembered, 'memory');
    this.refuseClosed();
    const setting = { declaration, policy, request, input, guard: undefined, closing };
    const { id, fingerprint } = request;
    const claim: Claim = { id, fingerprint, owner: nextOwner(), retentionMs: policy.retentionMs };
    const startMonoMs = runtime.monoMs();
    for (let tries = 0; ; tries++) {
      const attempt = await store.within(tx, claim, workOf(setting));
      if (attempt.kind === 'found') return answerRepeat(policy, request, attempt.record, 'record');
      if (attempt.kind === 'ran') return this.first(request, attempt.record, startMonoMs);
      if (attempt.kind === 'conflict') {
        const message = `${policy.name}: roll the whole transaction back and run it again`;
        throw new TurngateError('TRANSACTION_CONFLICT', message, { cause: attempt.cause });
      }
      if (attempt.sameFingerprint === false) throw keyReused(request, 'store');
      const ageMs = runtime.monoMs() - startMonoMs;
      if (policy.inFlight === 'reject' || ageMs >= policy.waitMs) {
        throw inProgress(policy, request, 'store', ageMs);
      }
      // The caller's connection is pinned by the caller's transaction; there is none to give back.
      await sleep(runtime, backoffMs(runtime, tries, withinPollRange));
    }
  }

  private refuseClosed(): void {
    if (this.parts.closing.aborted) throw new TurngateError('GATE_CLOSED', 'the gate is closed');
  }

  private async lead(
    key: string,
    request: Request,
    input: Input,
    signal: AbortSignal | undefined,
  ): Promise<Outcome<Value>> {
    const { policy, runtime } = this.parts;
    this.refuseClosed();
    const startedMonoMs = runtime.monoMs();
    const finished = this.fly(key, request, input);
    const { fingerprint } = request;
    this.flights.set(key, { fingerprint, startedMonoMs, order: ++this.order, finished });
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

  /** The flight itself: goes on when its first caller has left. */
  private async fly(key: string, request: Request, input: Input): Promise<Finished> {
    tell(request, { type: 'started' });
    try {
      const finished = await bringToRecord(this.parts, request, input);
      this.memory?.add(key, finished.record);
      return finished;
    } catch (error) {
      if (!isTold(error)) tell(request, { type: 'released', error });
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

  private first(
    request: Request,
    record: Finished['record'],
    startedMonoMs: number,
  ): Outcome<Value> {
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
