/** Calls of a declared staged operation: claim, take over, wait, replay. */
import type { StoredRecord } from '../../contract/record-store.ts';
import type { StagedClaim, StagedRecord, StagedStep } from '../../contract/staged-store.ts';
import { encodeResult } from '../../core/codec.ts';
import { isTurngateError, TurngateError } from '../../core/errors.ts';
import { sameFingerprint } from '../../core/fingerprint.ts';
import { backoffMs, sleep } from '../../runtime/wait.ts';
import { inProgress, keyReused, tell } from '../answers.ts';
import type { Finished } from '../attempt-loop.ts';
import { type OperationDeclaration, type Request, requestOf } from '../declaration.ts';
import { type CallOptions, Flights } from '../flights.ts';
import type { Outcome } from '../outcome.ts';
import type { OutcomeMemory } from '../outcome-memory.ts';
import type { RepeatShare } from '../repeat-share.ts';
import { type AttemptParts, parkedError, runAttempt, tellStaged, unknownError } from './attempt.ts';
import { type Leases, LiveHold } from './lease.ts';
import { claiming } from './persist.ts';

const pollRange = { baseMs: 8, capMs: 250 };

/** What the calls of a staged operation need. */
export interface StagedParts<Tx, Input, Value> extends AttemptParts<Tx, Input, Value> {
  readonly nextOwner: () => string;
  readonly leases: Leases;
  readonly memory: OutcomeMemory | undefined;
  readonly repeatShare: RepeatShare;
}

/** What to do about a record that is there. */
type Move =
  | { readonly kind: 'take'; readonly when: 'due' | 'now' | 'fresh' }
  | { readonly kind: 'answer' }
  | { readonly kind: 'wait' };

/** Runs the calls of one declared staged operation. */
export class StagedRunner<Tx, Input, Value> {
  readonly flights: Flights<Input, Value>;
  private readonly parts: StagedParts<Tx, Input, Value>;

  constructor(parts: StagedParts<Tx, Input, Value>) {
    this.parts = parts;
    const { policy, runtime, closing, memory } = parts;
    this.flights = new Flights<Input, Value>({
      policy,
      runtime,
      closing,
      memory,
      bring: (request, input) => this.bring(request, input),
      onFailed: () => {}, // The attempt has told how it left the record.
    });
  }

  /** Does the work once, or answers with what the first call got. */
  async call(input: Input, options: CallOptions = {}): Promise<Outcome<Value>> {
    return await this.flights.call(this.request(input), input, options);
  }

  /** Records the operation in the caller's transaction; recovery, or a call, runs it. */
  async enqueue(tx: Tx, input: Input): Promise<'accepted' | 'known'> {
    const request = this.request(input);
    this.flights.refuseClosed();
    const { kind, record } = await this.parts.store.enqueue(tx, this.claimOf(request, input));
    if (kind === 'claimed') return 'accepted';
    if (!sameFingerprint(record.fingerprint, request.fingerprint))
      throw keyReused(request, 'store');
    return 'known';
  }

  /** Takes up what recovery found. False: somebody else has it. */
  async recover(record: StagedRecord): Promise<boolean> {
    const request = { id: record.id, fingerprint: record.fingerprint };
    if (this.flights.has(request) || this.parts.closing.aborted) return false;
    let taken = false;
    const flight = this.flights.start(request, async () => {
      const claim = {
        ...record,
        owner: this.parts.nextOwner(),
        leaseMs: this.parts.policy.leaseMs,
      };
      const finished = await this.move(
        request,
        claim,
        record,
        moveFor(this.parts.policy, record, true),
      );
      taken = finished !== undefined;
      // Followers of this flight look for themselves.
      if (finished === undefined) throw inProgress(this.parts.policy, request, 'store', 0);
      return finished;
    });
    await flight.catch((error: unknown) => {
      taken ||= !isTurngateError(error, 'REQUEST_IN_PROGRESS');
    });
    return taken;
  }

  private request(input: Input): Request {
    const { declaration } = this.parts;
    return requestOf(declaration as unknown as OperationDeclaration<Tx, Input, Value>, input);
  }

  private claimOf(request: Request, input: Input): StagedClaim {
    const { nextOwner, policy } = this.parts;
    return {
      ...request,
      input: encodeInput(policy.name, input),
      owner: nextOwner(),
      leaseMs: policy.leaseMs,
    };
  }

  /** Runs until the record is finished, or throws what the caller has to be told. */
  private async bring(request: Request, input: Input): Promise<Finished> {
    const { policy, store, runtime, repeatShare, leases } = this.parts;
    const claim = this.claimOf(request, input);
    const startMonoMs = runtime.monoMs();
    for (let tries = 0; ; tries++) {
      let record = tries > 0 || repeatShare.readFirst() ? await store.read(request.id) : undefined;
      if (record === undefined) {
        const sentMonoMs = runtime.monoMs();
        const opened = await claiming(runtime, () => store.open(claim));
        if (opened.kind === 'claimed' && opened.record.state === 'running') {
          const hold = new LiveHold(
            leases,
            { ...claim, attempt: opened.record.attempt },
            policy.leaseMs,
            sentMonoMs,
          );
          const finished = await this.work(hold, opened.record, []);
          if (finished !== undefined) return this.finish(finished);
          continue;
        }
        record = opened.record;
      }
      const move = moveFor(policy, record, false);
      if (move.kind !== 'take' || move.when !== 'fresh') {
        if (!sameFingerprint(record.fingerprint, request.fingerprint))
          throw keyReused(request, 'store');
      }
      const finished = await this.move(
        request,
        { ...claim, owner: this.parts.nextOwner() },
        record,
        move,
      );
      if (finished !== undefined) return this.finish(finished);
      if (move.kind === 'wait') await this.pause(request, record, startMonoMs, tries);
    }
  }

  private finish(finished: Finished): Finished {
    this.parts.repeatShare.note(!finished.ran);
    return finished;
  }

  private async pause(
    request: Request,
    record: StagedRecord,
    startMonoMs: number,
    tries: number,
  ): Promise<void> {
    const { policy, runtime } = this.parts;
    const leftMs = startMonoMs + policy.waitMs - runtime.monoMs();
    if (policy.inFlight === 'reject' || leftMs <= 0) {
      // A sleeping operation says when it wakes; a running one is as old as it is.
      const sleepMs = record.state === 'sleeping' ? (record.dueInMs ?? 0) : 0;
      throw inProgress(policy, request, 'store', Math.max(sleepMs, runtime.monoMs() - startMonoMs));
    }
    if (tries <= 1) tell(request, { type: 'waiting', from: 'store' });
    await sleep(runtime, Math.min(backoffMs(runtime, tries, pollRange), leftMs));
  }

  /** Undefined: look again. */
  private async move(
    request: Request,
    claim: StagedClaim,
    record: StagedRecord,
    move: Move,
  ): Promise<Finished | undefined> {
    const { policy, store, runtime, leases } = this.parts;
    if (move.kind === 'wait') return undefined;
    if (move.kind === 'answer') return this.answer(record);
    const sentMonoMs = runtime.monoMs();
    const seenAttempt = record.attempt;
    const { when } = move;
    const taken = await claiming(runtime, () => store.takeOver(claim, { seenAttempt, when }));
    if (taken === undefined) return undefined;
    const { id } = request;
    const { attempt } = taken.record;
    const hold = new LiveHold(
      leases,
      { id, owner: claim.owner, attempt },
      policy.leaseMs,
      sentMonoMs,
    );
    // Nobody let go of it: each such end may be a crash that this operation causes.
    if (record.state === 'running' && taken.record.failures >= policy.attemptsMax) {
      await this.park(hold, { ...record, failures: taken.record.failures });
      throw parkedError(policy, record.error);
    }
    tellStaged(hold, { type: 'taken-over' });
    const { state, dueInMs = 0 } = record;
    const early = state === 'waiting' && dueInMs > 0;
    return await this.work(
      hold,
      taken.record,
      taken.steps,
      early ? sentMonoMs + dueInMs : undefined,
    );
  }

  private async park(hold: LiveHold, { error, failures }: StagedRecord): Promise<void> {
    const { store, policy } = this.parts;
    const { retentionMs } = policy;
    const leaving = {
      state: 'parked',
      dueInMs: undefined,
      error,
      failures,
      retentionMs,
    } as const;
    await store.leave(hold, leaving);
    tellStaged(hold, { type: 'parked', error });
  }

  private answer(record: StagedRecord): Finished {
    const { policy } = this.parts;
    if (record.state === 'parked') throw parkedError(policy, record.error);
    if (record.state === 'indeterminate') throw unknownError(policy, record.dueInMs, record.error);
    return { record: storedRecord(record), ran: false };
  }

  /** Undefined: it sleeps, or was given back. */
  private async work(
    hold: LiveHold,
    record: StagedRecord,
    steps: readonly StagedStep[],
    earlyForMonoMs?: number,
  ): Promise<Finished | undefined> {
    const { leases, policy } = this.parts;
    if (hold.attempt === 1) tellStaged(hold, { type: 'claimed' });
    leases.add(hold);
    try {
      const { input, promised, failures } = record;
      const start = { hold, input, steps, promised, failures, earlyForMonoMs };
      const ended = await runAttempt(this.parts, start);
      if (ended.kind === 'failed') throw ended.error;
      if (ended.kind === 'suspended') return undefined;
      const expiresAtMs = record.startedAtMs + policy.retentionMs;
      const finished = { ...record, ...ended.result, owner: hold.owner, expiresAtMs };
      return { record: storedRecord(finished), ran: true };
    } finally {
      leases.remove(hold);
    }
  }
}

/** What a caller, or the sweeper, does about a record. */
function moveFor(
  policy: { readonly resolves: boolean },
  record: StagedRecord,
  sweeping: boolean,
): Move {
  const due = record.dueInMs !== undefined && record.dueInMs <= 0;
  switch (record.state) {
    case 'done':
    case 'refused':
      return record.expired ? { kind: 'take', when: 'fresh' } : { kind: 'answer' };
    case 'released':
      return { kind: 'take', when: 'fresh' };
    case 'parked':
      return { kind: 'answer' };
    case 'indeterminate':
      return due && policy.resolves ? { kind: 'take', when: 'due' } : { kind: 'answer' };
    case 'waiting':
      return { kind: 'take', when: sweeping ? 'due' : 'now' };
    default:
      return due ? { kind: 'take', when: 'due' } : { kind: 'wait' };
  }
}

function storedRecord(record: StagedRecord): StoredRecord {
  const { state, fingerprint, owner, startedAtMs, expiresAtMs } = record;
  return {
    state: state as StoredRecord['state'],
    fingerprint,
    owner,
    result: record.result as string,
    firstProcessedAtMs: startedAtMs,
    expiresAtMs: expiresAtMs as number,
  };
}

function encodeInput(operation: string, input: unknown): string {
  try {
    return encodeResult(input);
  } catch (cause) {
    const why = (cause as Error).message.replace(/^result/, 'input');
    const message = `${operation}: the input cannot be stored, so nobody could go on with it: ${why}`;
    throw new TurngateError('OPTION_INVALID', message, { cause });
  }
}
