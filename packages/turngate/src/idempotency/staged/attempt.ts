/** One attempt at a staged operation: runs the handler over its steps and leaves the record. */
import type { Leaving, StagedStep, StagedStore, StepResult } from '../../contract/staged-store.ts';
import { decodeResult, encodeResult } from '../../core/codec.ts';
import { isTurngateError, TurngateError } from '../../core/errors.ts';
import { ownSignal } from '../../runtime/abort.ts';
import { emit, listened, type StagedEvent } from '../../runtime/events.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { backoffMs } from '../../runtime/wait.ts';
import { isRefusal } from '../declaration.ts';
import type { LiveHold } from './lease.ts';
import { persist } from './persist.ts';
import type { StagedContext, StagedDeclaration, StagedPolicy } from './staged-declaration.ts';
import { StepBook, Suspended } from './step-book.ts';
import { StepRunner } from './step-runner.ts';

/** Between attempts that recovery makes. A caller's own retry does not wait for it. */
const retryRange = { baseMs: 1_000, capMs: 300_000 };
const unknownRetryMs = 60_000;

/** What an attempt needs. */
export interface AttemptParts<Tx, Input, Value> {
  readonly declaration: StagedDeclaration<Tx, Input, Value>;
  readonly policy: StagedPolicy;
  readonly store: StagedStore<Tx>;
  readonly runtime: Runtime;
  readonly closing: AbortSignal;
  /** Does somebody in this gate take up what sleeps or waits? */
  readonly recovers: () => boolean;
}

/** What the attempt starts from. */
export interface Start {
  readonly hold: LiveHold;
  readonly input: string;
  readonly steps: readonly StagedStep[];
  readonly promised: boolean;
  readonly failures: number;
  /** When the next attempt was due, for one that a caller made before. */
  readonly earlyForMonoMs: number | undefined;
}

/** How an attempt ended: with a stored outcome, asleep, or with what the caller has to be told. */
export type Ended =
  | { readonly kind: 'finished'; readonly result: StepResult }
  | { readonly kind: 'suspended' }
  | { readonly kind: 'failed'; readonly error: unknown };

type Fact<Event> = Event extends StagedEvent
  ? Omit<Event, 'operation' | 'scope' | 'key' | 'attempt'>
  : never;

/** Tells subscribers what happened to an operation. */
export function tellStaged(hold: Pick<LiveHold, 'id' | 'attempt'>, fact: Fact<StagedEvent>): void {
  if (!listened('staged')) return;
  emit('staged', { ...hold.id, attempt: hold.attempt, ...fact } as StagedEvent);
}

/** Runs the handler once. Never rejects. */
export async function runAttempt<Tx, Input, Value>(
  parts: AttemptParts<Tx, Input, Value>,
  start: Start,
): Promise<Ended> {
  const { policy, runtime, closing } = parts;
  const { hold } = start;
  const book = new StepBook(policy, runtime, start.steps);
  const { signal, forget } = ownSignal(hold.signal, closing);
  let result: StepResult | undefined;
  try {
    const value = await runHandler(parts, start, book, signal);
    await book.close(true);
    result = { state: 'done', result: encodeChecked(policy, value) };
  } catch (error) {
    await book.close(false);
    // A refusal ends the operation, unless a step failed in a way that is not settled.
    if (isRefusal(error)) result = { state: 'refused', result: encodeResult(error.refusal) };
    else book.fail(error);
  } finally {
    forget();
  }
  try {
    if (book.failure !== undefined) throw book.failure.error;
    const outcome = result as StepResult;
    const { store } = parts;
    await persist(runtime, hold, () => store.end(hold, outcome, policy.retentionMs));
    tellStaged(hold, { type: 'finished' });
    return { kind: 'finished', result: outcome };
  } catch (error) {
    return await leave(parts, start, book, error);
  }
}

async function runHandler<Tx, Input, Value>(
  parts: AttemptParts<Tx, Input, Value>,
  { hold, input }: Start,
  book: StepBook,
  signal: AbortSignal,
): Promise<Value> {
  const { declaration, policy, store, runtime } = parts;
  const steps = new StepRunner<Tx>({
    book,
    hold,
    policy,
    store,
    runtime,
    signal,
    resolve: declaration.resolve,
    suspends: parts.recovers(),
    onDone: (step, durationMs) => {
      book.moved = true;
      tellStaged(hold, { type: 'step-done', step, durationMs });
    },
  });
  const { step, sleep, now, uuid, providerKey } = steps;
  const { scope, key } = hold.id;
  const tools = { step, sleep, now, uuid, providerKey };
  const context = { ...tools, signal, attempt: hold.attempt, scope, key } as StagedContext<Tx>;
  return await declaration.run(decodeResult(input) as Input, context);
}

/** Decides what becomes of an operation that is not finished, and what its caller is told. */
async function leave<Tx, Input, Value>(
  parts: AttemptParts<Tx, Input, Value>,
  start: Start,
  book: StepBook,
  error: unknown,
): Promise<Ended> {
  const { hold } = start;
  if (hold.lost || isTurngateError(error, 'LEASE_LOST')) {
    tellStaged(hold, { type: 'lease-lost' });
    return { kind: 'failed', error: hold.lose() };
  }
  const leaving = leavingOf(parts, start, book, error);
  try {
    await persist(parts.runtime, hold, () => parts.store.leave(hold, leaving));
  } catch (late) {
    // Taken over meanwhile, or the store is away: then the lease ends and somebody takes over.
    if (isTurngateError(late, 'LEASE_LOST')) return { kind: 'failed', error: late };
    const message = `${parts.policy.name}: the store is away; the operation is taken up later`;
    const detail = { outcome: 'unknown', cause: error, retryAfterMs: hold.leaseMs } as const;
    return { kind: 'failed', error: new TurngateError('STORE_UNAVAILABLE', message, detail) };
  }
  return toldEnd(parts, hold, book, leaving, error);
}

function leavingOf<Tx, Input, Value>(
  { policy, runtime }: AttemptParts<Tx, Input, Value>,
  { promised, failures: before, earlyForMonoMs }: Start,
  book: StepBook,
  error: unknown,
): Leaving {
  const { retentionMs } = policy;
  if (error instanceof Suspended) {
    const dueInMs = Math.ceil(error.wakeInMs);
    return { state: 'sleeping', dueInMs, error: undefined, failures: 0, retentionMs };
  }
  const text = errorText(error);
  const failures = book.moved ? 0 : before;
  // An attempt before its time is its caller's own: it brings nobody nearer to parking, and does not
  // put off the one that was due.
  const isEarly = earlyForMonoMs !== undefined;
  const dueInMs = isEarly
    ? Math.max(1, Math.ceil(earlyForMonoMs - runtime.monoMs()))
    : backoffMs(runtime, failures, retryRange);
  const counted = isEarly ? failures : failures + 1;
  const failed = { error: text, failures: counted, retentionMs };
  if (book.unknownStep !== undefined) {
    return { state: 'indeterminate', dueInMs: policy.resolves ? dueInMs : undefined, ...failed };
  }
  if (!promised && !book.hasEffects) return { state: 'released', dueInMs: undefined, ...failed };
  if (!isEarly && counted >= policy.attemptsMax)
    return { state: 'parked', dueInMs: undefined, ...failed };
  return { state: 'waiting', dueInMs, ...failed };
}

function toldEnd<Tx, Input, Value>(
  { policy }: AttemptParts<Tx, Input, Value>,
  hold: LiveHold,
  book: StepBook,
  { state, dueInMs }: Leaving,
  error: unknown,
): Ended {
  switch (state) {
    case 'sleeping':
      tellStaged(hold, { type: 'suspended', wakeInMs: dueInMs as number });
      return { kind: 'suspended' };
    case 'released':
      tellStaged(hold, { type: 'released', error });
      return { kind: 'failed', error };
    case 'parked':
      tellStaged(hold, { type: 'parked', error });
      return { kind: 'failed', error: parkedError(policy, error) };
    case 'indeterminate':
      tellStaged(hold, { type: 'indeterminate', step: book.unknownStep as string, error });
      return { kind: 'failed', error: unknownError(policy, dueInMs, error) };
    default:
      tellStaged(hold, { type: 'postponed', error, retryInMs: dueInMs as number });
      return { kind: 'failed', error: unknownError(policy, dueInMs, error) };
  }
}

/** What has begun is finished later: a caller that took a new key now would do it twice. */
export function unknownError(
  policy: StagedPolicy,
  dueInMs: number | undefined,
  cause: unknown,
): TurngateError {
  if (isTurngateError(cause, 'OUTCOME_UNKNOWN')) return cause;
  const message = `${policy.name}: effects have begun and the outcome is not known yet`;
  const retryAfterMs = Math.max(1_000, Math.ceil(dueInMs ?? unknownRetryMs));
  return new TurngateError('OUTCOME_UNKNOWN', message, { cause, retryAfterMs });
}

/** The error for an operation that needs an operator. */
export function parkedError(policy: StagedPolicy, cause: unknown): TurngateError {
  const message = `${policy.name}: failed ${policy.attemptsMax} times and needs an operator`;
  return new TurngateError('OPERATION_PARKED', message, { cause, retryAfterMs: 300_000 });
}

/** Name, code and message; no stack, and nothing of the payload that we would add. */
function errorText(error: unknown): string {
  const { name, code, message } = (error ?? {}) as Record<string, unknown>;
  const fields = { name: String(name), code, message: String(message).slice(0, 1_000) };
  return JSON.stringify(typeof code === 'string' ? fields : { ...fields, code: undefined });
}

function encodeChecked(policy: StagedPolicy, value: unknown): string {
  const result = encodeResult(value);
  if (result.length <= policy.resultCharsMax) return result;
  const message = `${policy.name}: result has ${result.length} characters, resultCharsMax is ${policy.resultCharsMax}`;
  throw new TurngateError('RESULT_INVALID', message);
}
