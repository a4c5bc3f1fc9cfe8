/** What both modes of the barrier have in common: the row's vocabulary, its checks, errors and purge. */
import type { SqlSession } from '../contract/sql-session.ts';
import { decodeResult, encodeResult } from '../core/codec.ts';
import { TurngateError } from '../core/errors.ts';
import { integerOption, optionError } from '../core/option.ts';
import { checkGid, gidAt } from './gid.ts';

/** The three words of TCC; a SAGA's do and undo are `try` and `cancel`. */
export type BranchOp = 'try' | 'confirm' | 'cancel';

/** How a branch stands. SUSPENDED: cancelled before its try came; that try is refused for ever. */
export type BranchState = 'TRIED' | 'CONFIRMED' | 'CANCELLED' | 'SUSPENDED';

/** A branch's name, and what is asked of it. */
export interface BranchName {
  readonly gid: string;
  /** Unique within the gid: 1 to 64 visible ASCII characters. */
  readonly branch: string;
  readonly op: BranchOp;
}

/** How a call ended. */
export interface BranchResult<T> {
  /** `ran`: the body ran now. `replayed`: it ran before. `empty`: there was nothing to cancel. */
  readonly kind: 'ran' | 'replayed' | 'empty';
  readonly state: BranchState;
  /** What the body of this op returned, also on a replay of a try. */
  readonly value: T | undefined;
}

/** One row per (gid, branch), whatever the mode. */
export const branchTable = 'turngate_branch';

/** @throws OPTION_INVALID */
export function checkBranch({ gid, branch, op }: BranchName): void {
  checkGid(gid);
  if (typeof branch !== 'string' || !/^[\x21-\x7e]{1,64}$/.test(branch)) {
    throw optionError('branch', '1 to 64 visible ASCII characters', branch);
  }
  if (!['try', 'confirm', 'cancel'].includes(op)) {
    throw optionError('op', 'try, confirm or cancel', op);
  }
}

/** @throws OPTION_INVALID */
export function horizonOption(horizonMs: number | undefined): number {
  const range = { min: 60_000, max: 3_650 * 86_400_000, fallback: 30 * 86_400_000 };
  return integerOption('horizonMs', horizonMs, range);
}

const resultCharsMax = 262_144;

/** @throws RESULT_INVALID */
export function keptResult({ branch }: BranchName, value: unknown): string | null {
  if (value === undefined) return null;
  const result = encodeResult(value);
  if (result.length <= resultCharsMax) return result;
  const message = `the result of branch ${branch} has more than ${resultCharsMax} characters`;
  throw new TurngateError('RESULT_INVALID', message);
}

export function storedValue<T>(result: unknown): T | undefined {
  return typeof result === 'string' ? (decodeResult(result) as T) : undefined;
}

export function conflict({ branch, op }: BranchName, state: string): TurngateError {
  return new TurngateError('BRANCH_CONFLICT', `${op} of branch ${branch}, which is ${state}`);
}

export function notTried({ branch }: BranchName): TurngateError {
  return new TurngateError('BRANCH_NOT_TRIED', `branch ${branch} has not been tried yet`);
}

export function refusedTry({ branch }: BranchName, state: string): TurngateError {
  return new TurngateError('BRANCH_REFUSED', `try of branch ${branch}, which is ${state}`);
}

/** @throws BRANCH_MISMATCH */
export function refuseOtherPayload({ branch }: BranchName, known: unknown, digest: string): void {
  if (known === digest) return;
  throw new TurngateError('BRANCH_MISMATCH', `branch ${branch} was tried with another payload`);
}

/** @throws BRANCH_MISMATCH */
export function refuseOtherMode({ branch }: BranchName, known: unknown, mode: string): void {
  if (known === mode) return;
  throw new TurngateError('BRANCH_MISMATCH', `branch ${branch} is ${known}, not ${mode}`);
}

const final = `state IN ('CONFIRMED', 'CANCELLED', 'SUSPENDED') AND recancel_ms IS NULL`;

/**
 * Deletes final rows that nothing is due of, made more than twice the horizon ago; returns how many went.
 * Names begin with their time, so the primary key finds the old ones.
 */
export async function purgeBranches(
  sql: Pick<SqlSession, 'query' | 'dialect'>,
  { horizonMs, nowMs }: { readonly horizonMs: number; readonly nowMs: number },
  limit: number | undefined,
): Promise<number> {
  const { rows } = await sql.query(
    `SELECT gid, branch FROM ${branchTable} WHERE gid < $1 AND ${final}
     LIMIT ${integerOption('limit', limit, { min: 1, max: 100_000, fallback: 1_000 })}`,
    [gidAt(Math.max(0, nowMs - 2 * horizonMs), '!')],
  );
  for (const { gid, branch } of rows) {
    await sql.query(`DELETE FROM ${branchTable} WHERE gid = $1 AND branch = $2 AND ${final}`, [
      String(gid),
      String(branch),
    ]);
  }
  return rows.length;
}
