/** What is known of a request, asked without doing its work. */
import type { RecordStore } from '../contract/record-store.ts';
import { TurngateError } from '../core/errors.ts';
import { checkKey, checkOperationName, checkScope, recordIdText } from '../core/record-id.ts';
import { answerRepeat, inProgress, keyReused } from './answers.ts';
import type { Request } from './declaration.ts';
import type { Outcome } from './outcome.ts';
import type { OutcomeMemory } from './outcome-memory.ts';

/** What a question needs. */
export interface LookUpParts {
  readonly store: Pick<RecordStore<never>, 'probe'>;
  readonly memory: OutcomeMemory | undefined;
  readonly nextOwner: () => string;
  readonly closing: AbortSignal;
}

/** The calls of the operation in this process. */
export interface RunningHere {
  /** @throws REQUEST_IN_PROGRESS, IDEMPOTENCY_KEY_REUSED */
  refuseRunning(request: Request): void;
}

/** Nothing is stored under the claim that probing needs, so that its retention is never used. */
const retentionMs = 1_000;

/** The outcome of finished work; undefined where nothing is known. */
export async function lookUp(
  parts: LookUpParts,
  request: Request,
  here: RunningHere | undefined,
): Promise<Outcome<unknown> | undefined> {
  const { id, fingerprint } = request;
  const policy = { name: checkOperationName(id.operation), repeat: 'replay' } as const;
  checkScope(id.scope);
  checkKey(id.key);
  if (parts.closing.aborted) throw new TurngateError('GATE_CLOSED', 'the gate is closed');
  const remembered = parts.memory?.get(recordIdText(id));
  if (remembered !== undefined) return answerRepeat(policy, request, remembered, 'memory');
  here?.refuseRunning(request);
  const claim = { id, fingerprint, owner: parts.nextOwner(), retentionMs };
  const seen = await parts.store.probe(claim);
  if (seen.kind === 'found') return answerRepeat(policy, request, seen.record, 'record');
  if (seen.kind === 'free') return undefined;
  if (seen.kind === 'busy' && seen.sameFingerprint === false) throw keyReused(request, 'store');
  throw inProgress(policy, request, 'store', 0);
}
