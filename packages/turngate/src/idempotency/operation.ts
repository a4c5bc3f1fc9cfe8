/** A declared operation that can be called: one flight per key in this process, then the store. */
import type { Claim } from '../contract/record-store.ts';
import { TurngateError } from '../core/errors.ts';
import { recordIdText } from '../core/record-id.ts';
import { backoffMs, sleep } from '../runtime/wait.ts';
import { answerRepeat, inProgress, keyReused } from './answers.ts';
import { bringToRecord, type Finished, type OperationParts } from './attempt-loop.ts';
import { type Request, requestOf } from './declaration.ts';
import { type CallOptions, Flights } from './flights.ts';
import { KeyWatch } from './key-watch.ts';
import type { Outcome } from './outcome.ts';
import type { OutcomeMemory } from './outcome-memory.ts';
import { workOf } from './work.ts';

export type { CallOptions } from './flights.ts';

const withinPollRange = { baseMs: 5, capMs: 100 };

/** Runs the calls of one declared operation. */
export class OperationRunner<Tx, Input, Value> {
  private readonly parts: OperationParts<Tx, Input, Value>;
  private readonly memory: OutcomeMemory | undefined;
  private readonly flights: Flights<Input, Value>;
  private readonly keyWatch = new KeyWatch();

  constructor(parts: OperationParts<Tx, Input, Value>, memory: OutcomeMemory | undefined) {
    this.parts = parts;
    this.memory = memory;
    const { policy, runtime, closing } = parts;
    const bring = (request: Request, input: Input): Promise<Finished> =>
      bringToRecord(parts, request, input);
    this.flights = new Flights({ policy, runtime, closing, memory, bring });
  }

  /** How many keys are being worked on in this process. */
  get inFlight(): number {
    return this.flights.inFlight;
  }

  /** Resolves when nothing is in flight any more. */
  idle(): Promise<void> {
    return this.flights.idle();
  }

  /** @throws REQUEST_IN_PROGRESS, IDEMPOTENCY_KEY_REUSED */
  refuseRunning(request: Request): void {
    this.flights.refuseRunning(request);
  }

  /** Does the work once, or answers with what the first call got. */
  async call(input: Input, options: CallOptions = {}): Promise<Outcome<Value>> {
    const request = requestOf(this.parts.declaration, input);
    this.keyWatch.look(request);
    return await this.flights.call(request, input, options);
  }

  /** Claims, works and records inside a transaction the caller owns and will commit. */
  async within(tx: Tx, input: Input): Promise<Outcome<Value>> {
    const { declaration, policy, store, runtime, closing, nextOwner } = this.parts;
    const request = requestOf(declaration, input);
    this.keyWatch.look(request);
    const remembered = this.memory?.get(recordIdText(request.id));
    if (remembered !== undefined) return answerRepeat(policy, request, remembered, 'memory');
    this.flights.refuseClosed();
    const setting = { declaration, policy, request, input, guard: undefined, closing };
    const { id, fingerprint } = request;
    const claim: Claim = { id, fingerprint, owner: nextOwner(), retentionMs: policy.retentionMs };
    const startMonoMs = runtime.monoMs();
    for (let tries = 0; ; tries++) {
      const attempt = await store.within(tx, claim, workOf(setting));
      if (attempt.kind === 'found') return answerRepeat(policy, request, attempt.record, 'record');
      if (attempt.kind === 'ran') return this.flights.first(request, attempt.record, startMonoMs);
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
}
