/** What the body of an external branch holds while its call is out: keys, lease, signal. */
import { TurngateError } from '../core/errors.ts';
import { providerKeyOf } from '../core/provider-key.ts';
import { ownSignal } from '../runtime/abort.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { BranchName } from './branch.ts';

/** What the body knows. */
export interface ExternalContext {
  readonly gid: string;
  readonly branch: string;
  /**
   * The same over all attempts of this op: hand it to the provider as its idempotency key. A second
   * cancel has one of its own.
   */
  readonly providerKey: string;
  /** The provider key of the branch's try, by which a confirm or a cancel names what was tried. */
  readonly tryKey: string;
  /** Aborts at the end of the lease, and with the caller's signal. */
  readonly signal: AbortSignal;
  /**
   * Call it before each of several calls outside: by this process's clock, is the lease still ours?
   *
   * @throws LEASE_LOST
   */
  assertLease(): void;
}

/** Runs a body that may use its lease until `endMs` of the monotonic clock. */
export async function holding<T>(
  runtime: Runtime,
  call: BranchName & { readonly signal?: AbortSignal | undefined },
  endMs: number,
  body: (context: ExternalContext) => Promise<T>,
  keyWord: string = call.op,
): Promise<T> {
  const { gid, branch } = call;
  const over = new AbortController();
  const timer = runtime.timer(Math.max(0, endMs - runtime.monoMs()), false, () =>
    over.abort(leaseLost(call)),
  );
  const { signal, forget } = ownSignal(over.signal, ...(call.signal ? [call.signal] : []));
  const keyOf = (word: string): string =>
    providerKeyOf({ operation: 'turngate.branch', scope: gid, key: branch }, word);
  try {
    return await body({
      gid,
      branch,
      providerKey: keyOf(keyWord),
      tryKey: keyOf('try'),
      signal,
      assertLease() {
        if (over.signal.aborted || runtime.monoMs() >= endMs) throw leaseLost(call);
      },
    });
  } finally {
    timer.cancel();
    forget();
  }
}

export function leaseLost({ op, branch }: BranchName): TurngateError {
  return new TurngateError('LEASE_LOST', `${op} of branch ${branch}: its lease is over`);
}
