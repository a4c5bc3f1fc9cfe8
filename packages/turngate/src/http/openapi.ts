/** What an API document says about a call's idempotency, derived from the operation's declaration. */
import type { OperationPolicy } from '../idempotency/declaration.ts';

/** The statement every writing call must make. */
export interface IdempotencyStatement {
  readonly operation: string;
  readonly supported: boolean;
  /** What the key is and where it comes from. */
  readonly key: string;
  /** What a repeat gets. */
  readonly repeat: string;
  /** What a repeat gets while the first still runs. */
  readonly inFlight: string;
  /** For how long a repeat is recognised. Seconds. */
  readonly retentionSeconds: number;
}

/** States an operation's idempotency in words; put it under `x-idempotency` and in the description. */
export function idempotencyStatement(policy: OperationPolicy): IdempotencyStatement {
  const waitSeconds = policy.waitMs / 1_000;
  return {
    operation: policy.name,
    supported: true,
    key: policy.keySource ?? 'the idempotency key',
    repeat:
      policy.repeat === 'replay'
        ? 'the first result again, with Idempotent-Replayed: true and Idempotency-First-Processed-At'
        : '409 DUPLICATE_REQUEST with the time the first was processed',
    inFlight:
      policy.inFlight === 'wait'
        ? `waits up to ${waitSeconds} s for the first result, then 409 REQUEST_IN_PROGRESS`
        : '409 REQUEST_IN_PROGRESS with Retry-After',
    retentionSeconds: policy.retentionMs / 1_000,
  };
}
