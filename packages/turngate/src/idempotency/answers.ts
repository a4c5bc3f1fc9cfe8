/** The answers to repeats: one place that decides, tells and counts them. */
import { TurngateError } from '../core/errors.ts';
import { sameFingerprint } from '../core/fingerprint.ts';
import { type AnsweredFrom, emit, type IdempotencyEvent, listened } from '../runtime/events.ts';
import type { OperationPolicy, Request } from './declaration.ts';
import { type Outcome, outcomeOf } from './outcome.ts';
import type { Remembered } from './outcome-memory.ts';

type Fact<Event> = Event extends IdempotencyEvent
  ? Omit<Event, 'operation' | 'scope' | 'key'>
  : never;

/** Tells subscribers what happened to a request. */
export function tell(request: Request, fact: Fact<IdempotencyEvent>): void {
  if (!listened('idempotency')) return; // Nothing is built for nobody.
  emit('idempotency', { ...request.id, ...fact } as IdempotencyEvent);
}

/** Answers a repeat from a finished record, or refuses it as the operation's policy says. */
export function answerRepeat<Value>(
  policy: Pick<OperationPolicy, 'name' | 'repeat'>,
  request: Request,
  record: Remembered,
  from: AnsweredFrom,
): Outcome<Value> {
  checkPayload(request, record.fingerprint, from);
  const firstProcessedAt = new Date(record.firstProcessedAtMs);
  if (policy.repeat === 'replay') {
    tell(request, { type: 'replayed', from, firstProcessedAt });
    return outcomeOf(record, true);
  }
  tell(request, { type: 'duplicate-refused', firstProcessedAt });
  const message = `${policy.name}: this request was processed before`;
  throw new TurngateError('DUPLICATE_REQUEST', message, { firstProcessedAt, replayed: true });
}

/** Compared before any status, so a wrong payload is told so also while the first still runs. */
export function checkPayload(
  request: Request,
  fingerprint: string,
  from: AnsweredFrom | 'store',
): void {
  if (!sameFingerprint(fingerprint, request.fingerprint)) throw keyReused(request, from);
}

/** The error for a key that came with another payload. */
export function keyReused(request: Request, from: AnsweredFrom | 'store'): TurngateError {
  tell(request, { type: 'key-reused', from });
  const message = `${request.id.operation}: this idempotency key was used with another payload`;
  return new TurngateError('IDEMPOTENCY_KEY_REUSED', message);
}

/** The error for a repeat that does not, or no longer, wait for the first. */
export function inProgress(
  policy: Pick<OperationPolicy, 'name'>,
  request: Request,
  from: 'flight' | 'store',
  ageMs: number,
): TurngateError {
  tell(request, { type: 'in-progress', from });
  // Work that has taken long will take long: come back after as long again, 1 to 30 seconds.
  const retryAfterMs = Math.min(30_000, Math.max(1_000, Math.ceil(ageMs / 1_000) * 1_000));
  const message = `${policy.name}: the first request with this key is still running`;
  return new TurngateError('REQUEST_IN_PROGRESS', message, { retryAfterMs });
}
