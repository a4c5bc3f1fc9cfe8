/**
 * The barrier of a participant whose effect is outside its database: a provider, a cache, a device. A row
 * says that a call is out *before* it goes out, so nothing that may have happened is ever taken for
 * empty. Each cell of the table in docs/guide-sagas.md is one word in external-decision.ts.
 */
import type { SqlDatabase } from '../contract/sql-session.ts';
import { isTurngateError, TurngateError } from '../core/errors.ts';
import { fingerprintOf } from '../core/fingerprint.ts';
import { functionOption, integerOption, knownOptions } from '../core/option.ts';
import { emit } from '../runtime/events.ts';
import { attemptIds, type Runtime, systemRuntime } from '../runtime/runtime.ts';
import {
  type BranchName,
  type BranchResult,
  checkBranch,
  horizonOption,
  keptResult,
  purgeBranches,
  storedValue,
} from './branch.ts';
import { withoutConflicts } from './conflicts.ts';
import { type ExternalContext, holding, leaseLost } from './external-call.ts';
import { endOf } from './external-decision.ts';
import {
  type RecancelOptions,
  type Recancels,
  recancelDue,
  type SecondCancel,
  startRecancels,
} from './external-recancel.ts';
import { type Claimed, claim, finish, forget, queueRecancel, release } from './external-rows.ts';
import { refuseOld } from './gid.ts';

/** Which branch, and what is asked of it. */
export interface ExternalCall extends BranchName {
  /** The payload of a try: another one under the same branch is refused. */
  readonly payload?: unknown;
  /** Handed on to the body; aborting it proves nothing about what happened outside. */
  readonly signal?: AbortSignal;
}

/** Options of an external barrier. */
export interface ExternalBarrierOptions {
  /** As in {@link BarrierOptions}. @unit milliseconds, integer, 60_000 to 3_650 days; default 30 days */
  readonly horizonMs?: number;
  /**
   * How long one call outside may take. It is not renewed: when its process dies, the branch stands
   * still for this long, then whoever asks next takes over.
   *
   * @unit milliseconds, integer, 100 to 3_600_000
   * @default 60_000
   */
  readonly leaseMs?: number;
  /**
   * How long after the end of its lease a call may still land at the provider. A cancel of a try whose
   * end is not known is sent a second time after it, see {@link ExternalBarrier.startRecancels}.
   *
   * @unit milliseconds, integer, 0 to 86_400_000
   * @default 60_000
   */
  readonly providerLatencyMaxMs?: number;
  readonly runtime?: Runtime;
}

/** Guards branches whose effect is outside the database. */
export interface ExternalBarrier {
  /**
   * Runs `body` where the state allows it, between two short transactions of its own; never call it
   * inside a transaction. When the body throws, or its process dies, the end is not known: a repeat of
   * the op runs the body again under the same `providerKey`, and a cancel of a try runs its body. Only
   * `throw refuse(…)` in a first try says "nothing happened"; the branch is then as if never tried.
   *
   * Not promised: that the provider hears each call once. It is once if the provider honours the key.
   *
   * @throws OPTION_INVALID, GID_EXPIRED, BUSY (another call is out: retry later), BRANCH_NOT_TRIED (retry
   * later), BRANCH_REFUSED, BRANCH_CONFLICT, BRANCH_MISMATCH; LEASE_LOST when another took over meanwhile:
   * what this call returned is dropped
   */
  call<T>(
    call: ExternalCall,
    body: (context: ExternalContext) => Promise<T>,
  ): Promise<BranchResult<T>>;
  /**
   * Sends the second cancels of a branch that are due, oldest first, each under a lease and a key of its
   * own; returns how many succeeded. One that fails is due again after the lease.
   */
  recancel(branch: string, cancel: SecondCancel, limit?: number): Promise<number>;
  /**
   * Calls {@link ExternalBarrier.recancel} again and again for each branch, in any number of processes,
   * until it is stopped. What fails is a `recancel-failed` event of the family `saga`.
   *
   * @throws OPTION_INVALID
   */
  startRecancels(
    cancels: Readonly<Record<string, SecondCancel>>,
    options?: RecancelOptions,
  ): Recancels;
  /** Deletes final rows of both modes, made more than twice the horizon ago, never one with a cancel due. */
  purge(limit?: number): Promise<number>;
}

/** @throws OPTION_INVALID */
export function createExternalBarrier(
  database: SqlDatabase,
  options: ExternalBarrierOptions = {},
): ExternalBarrier {
  const known = ['horizonMs', 'leaseMs', 'providerLatencyMaxMs', 'runtime'];
  knownOptions('external barrier options', options, known);
  const horizonMs = horizonOption(options.horizonMs);
  const leaseRange = { min: 100, max: 3_600_000, fallback: 60_000 };
  const leaseMs = integerOption('leaseMs', options.leaseMs, leaseRange);
  const latency = { min: 0, max: 86_400_000, fallback: 60_000 };
  const providerLatencyMaxMs = integerOption(
    'providerLatencyMaxMs',
    options.providerLatencyMaxMs,
    latency,
  );
  const runtime = options.runtime ?? systemRuntime;
  const nextToken = attemptIds(runtime);
  const again = { database, runtime, leaseMs };
  return {
    async call(call, body) {
      knownOptions('branch call', call, ['gid', 'branch', 'op', 'payload', 'signal']);
      checkBranch(call);
      functionOption('body', body);
      refuseOld(call.gid, runtime.wallMs(), horizonMs);
      const digest = fingerprintOf(call.payload ?? null);
      let endMs = 0;
      const claimed = await withoutConflicts(() => {
        endMs = runtime.monoMs() + leaseMs; // Before the database starts its own count.
        const facts = { digest, token: nextToken(), leaseMs, providerLatencyMaxMs };
        return database.transaction((sql) => claim<never>(sql, call, facts));
      });
      const result =
        'fence' in claimed
          ? await settle(database, call, claimed, () => holding(runtime, call, endMs, body))
          : claimed;
      emit('saga', { type: `${call.op}-${result.kind}`, branch: call.branch });
      return result;
    },
    recancel: (branch, cancel, limit) => recancelDue(again, branch, cancel, limit),
    startRecancels: (cancels, own = {}) => startRecancels(again, cancels, own),
    purge: (limit) => purgeBranches(database, { horizonMs, nowMs: runtime.wallMs() }, limit),
  };
}

/** The call outside and the transaction after it. */
async function settle<T>(
  database: SqlDatabase,
  call: ExternalCall,
  claimed: Claimed,
  send: () => Promise<T>,
): Promise<BranchResult<T>> {
  const isTry = call.op === 'try';
  let value: T;
  let result: string | null;
  try {
    value = await send();
    result = isTry ? kept(call, value) : null;
  } catch (error) {
    // An earlier attempt may have happened all the same: only the first can say that nothing did.
    const nothing = isTry && claimed.fence === 1 && isTurngateError(error, 'REFUSED');
    await giveUp(database, call, claimed, nothing ? forget : release).catch((failure: unknown) =>
      emit('saga', { type: 'release-failed', branch: call.branch, error: failure }),
    );
    throw error;
  }
  if (await finish(database, call, claimed, result)) {
    const back = result === null ? value : (storedValue<T>(result) as T);
    return { kind: 'ran', state: endOf[claimed.state], value: back };
  }
  if (isTry) await queueRecancel(database, call);
  throw leaseLost(call);
}

/** Ends a claim before its lease; a failure here costs the next caller the rest of the lease. */
async function giveUp(
  database: SqlDatabase,
  call: ExternalCall,
  claimed: Claimed,
  how: typeof release,
): Promise<void> {
  const ours = await how(database, call, claimed);
  if (!ours && call.op === 'try') await queueRecancel(database, call);
}

/** A result that cannot be stored does not undo what happened outside. */
function kept(call: ExternalCall, value: unknown): string | null {
  try {
    return keptResult(call, value);
  } catch (cause) {
    const { message } = cause as Error;
    throw new TurngateError('RESULT_INVALID', message, { outcome: 'applied', cause });
  }
}
