/**
 * Brings one request to its record: claims, waits off-connection while another process works,
 * retries what the database rolled back, settles an unknown commit by reading.
 */
import {
  type Attempt,
  type Claim,
  isCommitUnknown,
  type RecordStore,
  type StoredRecord,
} from '../contract/record-store.ts';
import { TurngateError } from '../core/errors.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { backoffMs, sleep } from '../runtime/wait.ts';
import { inProgress, keyReused, tell } from './answers.ts';
import type { OperationDeclaration, OperationPolicy, Request } from './declaration.ts';
import type { RepeatShare } from './repeat-share.ts';
import { type Guard, workOf } from './work.ts';

const pollRange = { baseMs: 8, capMs: 250 };
const conflictRange = { baseMs: 10, capMs: 200 };
const conflictsMax = 5;
const settleLimitMs = 10_000;

/** What an operation needs to run its calls. */
export interface OperationParts<Tx, Input, Value> {
  readonly declaration: OperationDeclaration<Tx, Input, Value>;
  readonly policy: OperationPolicy;
  readonly store: RecordStore<Tx>;
  readonly runtime: Runtime;
  readonly nextOwner: () => string;
  readonly closing: AbortSignal;
  readonly repeatShare: RepeatShare;
  /** Takes the operation's lock, where it has one. */
  readonly enter: ((input: Input, waitMs: number) => Promise<Guard>) | undefined;
}

/** A finished record and whether this call did the work. */
export interface Finished {
  readonly record: StoredRecord;
  readonly ran: boolean;
}

/** Runs until the record is finished, or throws what the caller has to be told. */
export async function bringToRecord<Tx, Input, Value>(
  parts: OperationParts<Tx, Input, Value>,
  request: Request,
  input: Input,
): Promise<Finished> {
  const { policy, store, runtime, repeatShare } = parts;
  const startMonoMs = runtime.monoMs();
  const leftMs = (): number => startMonoMs + policy.waitMs - runtime.monoMs();
  for (let tries = 0, conflicts = 0; ; tries++) {
    // The quick check: always before a lock is taken, otherwise where repeats are the rule.
    if (parts.enter !== undefined || repeatShare.readFirst()) {
      const record = await store.read(request.id);
      if (record !== undefined) return finish(parts, { record, ran: false });
    }
    const attempt = await tryOnce(parts, request, input, Math.max(0, leftMs()));
    if (attempt.kind === 'ran' || attempt.kind === 'found') {
      return finish(parts, { record: attempt.record, ran: attempt.kind === 'ran' });
    }
    if (attempt.kind === 'conflict') {
      if (++conflicts > conflictsMax) throw conflictError(policy, attempt.cause);
      tell(request, { type: 'conflict-retried', attempt: conflicts, error: attempt.cause });
      await sleep(runtime, backoffMs(runtime, conflicts, conflictRange));
      continue;
    }
    if (attempt.sameFingerprint === false) throw keyReused(request, 'store');
    const pauseMs = Math.min(backoffMs(runtime, tries, pollRange), leftMs());
    if (policy.inFlight === 'reject' || pauseMs <= 0) {
      throw inProgress(policy, request, 'store', runtime.monoMs() - startMonoMs);
    }
    if (tries === 0) tell(request, { type: 'waiting', from: 'store' });
    await sleep(runtime, pauseMs);
  }
}

function finish<Tx, Input, Value>(
  parts: OperationParts<Tx, Input, Value>,
  finished: Finished,
): Finished {
  parts.repeatShare.note(!finished.ran);
  return finished;
}

/** Lock, claim with its second check, work, commit; unlock after the commit. */
async function tryOnce<Tx, Input, Value>(
  parts: OperationParts<Tx, Input, Value>,
  request: Request,
  input: Input,
  waitMs: number,
): Promise<Attempt> {
  const { declaration, policy, store, closing } = parts;
  const guard = parts.enter === undefined ? undefined : await parts.enter(input, waitMs);
  const { id, fingerprint } = request;
  const claim = { id, fingerprint, owner: parts.nextOwner(), retentionMs: policy.retentionMs };
  try {
    const setting = { declaration, policy, request, input, guard, closing };
    return await store.attempt(claim, workOf(setting));
  } catch (error) {
    if (!isCommitUnknown(error)) throw error;
    return await settleCommit(parts, request, claim, error);
  } finally {
    if (guard !== undefined) await guard.release();
  }
}

/**
 * The answer to COMMIT was lost. The record says what happened: ours means committed; no record
 * *and* no older transaction that could still write it means rolled back. It is never run again
 * here: the caller decides, told "not-applied".
 */
async function settleCommit<Tx, Input, Value>(
  parts: OperationParts<Tx, Input, Value>,
  request: Request,
  claim: Claim,
  cause: unknown,
): Promise<Attempt> {
  const { store, runtime, policy } = parts;
  tell(request, { type: 'commit-unknown', error: cause });
  const endMonoMs = runtime.monoMs() + Math.max(settleLimitMs, policy.waitMs);
  for (let tries = 0; runtime.monoMs() < endMonoMs; tries++) {
    const seen = await store.probe(claim).catch(() => undefined); // Still down: read again later.
    if (seen?.kind === 'found') {
      const ours = seen.record.owner === claim.owner;
      tell(request, { type: 'commit-settled', committed: ours });
      return ours ? { kind: 'ran', record: seen.record } : seen;
    }
    if (seen?.kind === 'free') {
      tell(request, { type: 'commit-settled', committed: false });
      const message = `${policy.name}: the connection was lost; the transaction was rolled back`;
      throw new TurngateError('STORE_UNAVAILABLE', message, { cause, retryAfterMs: 1_000 });
    }
    await sleep(runtime, backoffMs(runtime, tries, pollRange));
  }
  const message = `${policy.name}: the commit could be neither confirmed nor ruled out`;
  throw new TurngateError('OUTCOME_UNKNOWN', message, { cause, retryAfterMs: 5_000 });
}

function conflictError(policy: OperationPolicy, cause: unknown): TurngateError {
  const message = `${policy.name}: rolled back by the database ${conflictsMax + 1} times in a row`;
  return new TurngateError('TRANSACTION_CONFLICT', message, { cause, retryAfterMs: 1_000 });
}
