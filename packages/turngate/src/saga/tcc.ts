/**
 * TCC: try all branches; confirm all when every try succeeded, else cancel all. A staged operation, like
 * the saga: confirms and cancels are recorded steps that are tried until they work.
 */
import { createHash } from 'node:crypto';
import { isTurngateError, refuse, type TurngateError } from '../core/errors.ts';
import { functionOption, optionError } from '../core/option.ts';
import type { StagedContext, StagedDeclaration } from '../idempotency/staged/staged-declaration.ts';
import {
  type CoordinatedDeclaration,
  checkKnown,
  deadlineOption,
  forwardAttemptsOption,
  isTooLate,
  stagedFrame,
} from './coordinated.ts';
import { gidAt } from './gid.ts';

/** What a branch is told. */
export interface BranchContext {
  readonly gid: string;
  readonly branch: string;
  readonly signal: AbortSignal;
}

/**
 * A participant as the coordinator sees it; each verb must stand behind a barrier. `try` may refuse by
 * `throw refuse(…)`; confirm and cancel cannot: they are tried until they work.
 */
export interface Participant<Payload> {
  readonly try: (payload: Payload, context: BranchContext) => Promise<unknown>;
  readonly confirm: (payload: Payload, context: BranchContext) => Promise<unknown>;
  readonly cancel: (payload: Payload, context: BranchContext) => Promise<unknown>;
}

/** One branch: which participant, and with what. */
export interface TccBranch<Input> {
  /** Unique in the transaction, 1 to 64 letters, digits, dots, dashes and underscores. */
  readonly name: string;
  readonly participant: Participant<never>;
  /** What the participant gets; must not change between attempts. */
  readonly payload: (input: Input) => unknown;
}

/** A TCC transaction. */
export interface TccDeclaration<Input> extends CoordinatedDeclaration<Input> {
  readonly branches: readonly TccBranch<Input>[];
  /** @unit milliseconds, integer, 100 to 31 days; default 600_000: after it tries are given up */
  readonly deadlineMs?: number;
  /** @unit attempts, integer, 1 to 1_000; default 3: after them tries are given up */
  readonly tryAttemptsMax?: number;
}

/** A confirmed transaction: its gid, and what the tries returned. A cancelled one is REFUSED. */
export interface TccOutcome {
  readonly gid: string;
  readonly outputs: Readonly<Record<string, unknown>>;
}

/** The code under which a cancelled transaction is refused. */
export const tccCancelled = 'TCC_CANCELLED';

const branchName = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Turns it into a staged operation: `gate.stagedOperation(defineTcc({ … }))`.
 *
 * Not promised: that a participant hears each word once; the barrier is what makes repeats harmless.
 *
 * @throws OPTION_INVALID
 */
export function defineTcc<Tx, Input>(
  declaration: TccDeclaration<Input>,
): StagedDeclaration<Tx, Input, TccOutcome> {
  checkKnown('tcc', declaration, ['branches', 'tryAttemptsMax']);
  const branches = checkBranches(declaration.branches);
  const { name, deadlineMs, tryAttemptsMax } = declaration;
  const limits = {
    deadlineMs: deadlineOption(deadlineMs, 600_000),
    attemptsMax: forwardAttemptsOption('tryAttemptsMax', tryAttemptsMax, 3),
  };
  return {
    ...stagedFrame(declaration, branches.length),
    async run(input, context) {
      const startMs = (await context.now('started')).getTime();
      const late = (attempt: number): boolean => isTooLate(limits, startMs, attempt);
      const run: TccRun<Tx, Input> = { input, context, gid: gidOf(name, context, startMs) };
      const { outputs, no } = await tryAll(run, branches, late);
      const verb = no === undefined ? 'confirm' : 'cancel';
      await settleAll(run, branches, verb);
      if (no !== undefined)
        throw refuse(tccCancelled, no.message, { branch: no.branch, gid: run.gid });
      return { gid: run.gid, outputs };
    },
  };
}

interface TccRun<Tx, Input> {
  readonly input: Input;
  readonly context: StagedContext<Tx>;
  readonly gid: string;
}

/** The same in every attempt: from the recorded start and the operation's identity. */
function gidOf(
  name: string,
  { scope, key }: StagedContext<never> | StagedContext<unknown>,
  startMs: number,
): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([name, scope, key]))
    .digest('base64url');
  return gidAt(startMs, digest);
}

async function tryAll<Tx, Input>(
  { input, context, gid }: TccRun<Tx, Input>,
  branches: readonly TccBranch<Input>[],
  late: (attempt: number) => boolean,
): Promise<{
  outputs: Record<string, unknown>;
  no: { branch: string; message: string } | undefined;
}> {
  const outputs: Record<string, unknown> = {};
  let no: { branch: string; message: string } | undefined;
  const tries = branches.map(({ name, participant, payload }) =>
    context.step(`try ${name}`, (_key, { attempt, signal }) => {
      if (late(attempt)) throw refuse('TCC_GAVE_UP', `branch ${name} was not tried in time`);
      return participant.try(payload(input) as never, { gid, branch: name, signal });
    }),
  );
  for (const [i, result] of (await Promise.allSettled(tries)).entries()) {
    const { name } = branches[i] as TccBranch<Input>;
    if (result.status === 'fulfilled') outputs[name] = result.value;
    else if (!isTurngateError(result.reason, 'REFUSED')) throw result.reason;
    else no ??= { branch: name, message: (result.reason as TurngateError).message };
  }
  return { outputs, no };
}

/** Also a branch that refused is cancelled: its empty cancel keeps a late repeat of its try out. */
async function settleAll<Tx, Input>(
  { input, context, gid }: TccRun<Tx, Input>,
  branches: readonly TccBranch<Input>[],
  verb: 'confirm' | 'cancel',
): Promise<void> {
  const calls = branches.map(({ name, participant, payload }) =>
    context.step(`${verb} ${name}`, async (_key, { signal }) => {
      await participant[verb](payload(input) as never, { gid, branch: name, signal });
    }),
  );
  const failed = (await Promise.allSettled(calls)).find(({ status }) => status === 'rejected');
  if (failed === undefined) return;
  const { reason } = failed as PromiseRejectedResult;
  if (!isTurngateError(reason, 'REFUSED')) throw reason;
  throw new Error(`a ${verb} cannot be refused: ${reason.message}`, { cause: reason });
}

function checkBranches<Input>(branches: readonly TccBranch<Input>[]): readonly TccBranch<Input>[] {
  if (!Array.isArray(branches) || branches.length === 0) {
    throw optionError('branches', 'at least one', branches);
  }
  const names = new Set<string>();
  for (const { name, participant, payload } of branches as readonly TccBranch<Input>[]) {
    if (!branchName.test(name) || names.has(name)) {
      throw optionError('branch name', 'unique, 1 to 64 of letters, digits, . _ -', name);
    }
    names.add(name);
    functionOption(`payload of ${name}`, payload);
    for (const verb of ['try', 'confirm', 'cancel'] as const) {
      functionOption(`${verb} of ${name}`, participant?.[verb]);
    }
  }
  return branches;
}
