/** The row of a branch in external mode: short transactions before and after the call outside. */
import { ClaimTable } from '../claim/claim-table.ts';
import type { SqlDatabase, SqlSession } from '../contract/sql-session.ts';
import { TurngateError } from '../core/errors.ts';
import { sqlNowMs } from '../core/sql-text.ts';
import {
  type BranchName,
  type BranchResult,
  conflict,
  notTried,
  refusedTry,
  refuseOtherMode,
  refuseOtherPayload,
  storedValue,
  branchTable as table,
} from './branch.ts';
import { decide, type ExternalState, endOf, isOut, type OutState } from './external-decision.ts';

/** The right to call outside, until the lease ends or somebody else takes over. */
export interface Claimed {
  readonly state: OutState;
  /** 1 for the first attempt; every claim of the row counts one on. */
  readonly fence: number;
}

/** What a claim needs to know beside the name. */
export interface ClaimFacts {
  readonly digest: string;
  readonly token: string;
  readonly leaseMs: number;
  readonly providerLatencyMaxMs: number;
}

/**
 * The first transaction: the right to call, or the answer without a call.
 *
 * @throws BUSY while another call is out, BRANCH_NOT_TRIED, BRANCH_REFUSED, BRANCH_CONFLICT, BRANCH_MISMATCH
 */
export async function claim<T>(
  sql: SqlSession,
  call: BranchName,
  facts: ClaimFacts,
): Promise<Claimed | BranchResult<T>> {
  const { ours, row } = await find(sql, call, facts);
  if (row === undefined) throw notTried(call);
  if (ours && call.op === 'cancel') return { kind: 'empty', state: 'SUSPENDED', value: undefined };
  if (ours) return { state: 'TRYING', fence: 1 };
  refuseOtherMode(call, row['mode'], 'external');
  const state = row['state'] as ExternalState;
  const decision = decide(call.op, state);
  if (decision === 'refused') throw refusedTry(call, state);
  if (decision === 'not-tried') throw notTried(call);
  if (decision === 'conflict') throw conflict(call, state);
  if (call.op === 'try') refuseOtherPayload(call, row['digest'], facts.digest);
  if (decision === 'replay') {
    const value = call.op === 'try' ? storedValue<T>(row['result']) : undefined;
    return { kind: 'replayed', state: state as BranchResult<T>['state'], value };
  }
  const leftMs = Number(row['left_ms']);
  if (isOut(state) && leftMs > 0) throw busy(call, leftMs);
  return await goOn(sql, call, facts, { from: state, to: decision, fence: Number(row['fence']) });
}

const read = {
  state: 'state',
  mode: 'mode',
  digest: 'digest',
  result: 'result',
  fence: 'fence',
  left_ms: 'lease_until_ms - {now}',
};

/** Rows of a try, which calls at once, and of a cancel that finds none. */
const rows = {
  try: claimsOf({ state: "'TRYING'", fence: '1', lease_until_ms: '{now} + {}' }),
  cancel: claimsOf({ state: "'SUSPENDED'", fence: '0', lease_until_ms: '0' }),
};

function claimsOf(start: Readonly<Record<string, string>>): ClaimTable {
  const told = { mode: "'external'", digest: '{}', first_op: '{}' };
  const fresh = { ...told, ...start, created_ms: '{now}', updated_ms: '{now}' };
  return new ClaimTable({ table, key: ['gid', 'branch'], fresh, read });
}

/** Insert first, but never for a confirm: its try may still be on its way. The row is locked then. */
async function find(
  sql: SqlSession,
  { gid, branch, op }: BranchName,
  { digest, token, leaseMs }: ClaimFacts,
): Promise<{ ours: boolean; row: Readonly<Record<string, unknown>> | undefined }> {
  if (op === 'confirm') return { ours: false, row: await rows.try.locked(sql, [gid, branch]) };
  const values = op === 'try' ? [digest, op, leaseMs] : [digest, op];
  return await rows[op].claim(sql, { key: [gid, branch], values, token });
}

/** A try that may have been lost on its way may land after its cancel: then a second one is due. */
async function goOn(
  sql: SqlSession,
  { gid, branch }: BranchName,
  { leaseMs, providerLatencyMaxMs }: ClaimFacts,
  { from, to, fence }: { from: ExternalState; to: OutState; fence: number },
): Promise<Claimed> {
  const now = sqlNowMs[sql.dialect];
  const inDoubt = from === 'TRYING' || (from === 'TRIED' && fence > 1);
  const recancel = to === 'CANCELLING' && inDoubt;
  await sql.query(
    `UPDATE ${table} SET state = $3, fence = fence + 1, lease_until_ms = ${now} + ${leaseMs},
       ${recancel ? `recancel_ms = ${now} + ${providerLatencyMaxMs},` : ''} updated_ms = ${now}
     WHERE gid = $1 AND branch = $2`,
    [gid, branch, to],
  );
  return { state: to, fence: fence + 1 };
}

function busy({ op, branch }: BranchName, leftMs: number): TurngateError {
  const message = `${op} of branch ${branch}: another call is out`;
  return new TurngateError('BUSY', message, { outcome: 'unknown', retryAfterMs: leftMs });
}

type Named = Pick<BranchName, 'gid' | 'branch'>;
const mine = 'gid = $1 AND branch = $2 AND state = $3 AND fence = $4';

/** The second transaction: the call has succeeded. False when somebody else has taken over. */
export async function finish(
  database: SqlDatabase,
  { gid, branch }: Named,
  { state, fence }: Claimed,
  result: string | null,
): Promise<boolean> {
  const keep = state === 'TRYING' ? 'result = $6,' : '';
  const { affectedRows } = await database.query(
    `UPDATE ${table} SET state = $5, ${keep} lease_until_ms = 0,
       updated_ms = ${sqlNowMs[database.dialect]} WHERE ${mine}`,
    [gid, branch, state, fence, endOf[state], ...(state === 'TRYING' ? [result] : [])],
  );
  return affectedRows > 0;
}

/** The call has ended without success: whoever comes next need not wait for the lease. */
export async function release(
  database: SqlDatabase,
  { gid, branch }: Named,
  { state, fence }: Claimed,
): Promise<boolean> {
  const { affectedRows } = await database.query(
    `UPDATE ${table} SET lease_until_ms = 0, updated_ms = ${sqlNowMs[database.dialect]}
     WHERE ${mine}`,
    [gid, branch, state, fence],
  );
  return affectedRows > 0;
}

/** A first attempt that was refused: nothing is left of it, a later cancel is empty. */
export async function forget(
  database: SqlDatabase,
  { gid, branch }: Named,
  { state, fence }: Claimed,
): Promise<boolean> {
  const { affectedRows } = await database.query(`DELETE FROM ${table} WHERE ${mine}`, [
    gid,
    branch,
    state,
    fence,
  ]);
  return affectedRows > 0;
}

/** A try has ended after its cancel began: a second cancel is due at once. */
export async function queueRecancel(database: SqlDatabase, { gid, branch }: Named): Promise<void> {
  await database.query(
    `UPDATE ${table} SET recancel_ms = ${sqlNowMs[database.dialect]}
     WHERE gid = $1 AND branch = $2 AND mode = 'external' AND state IN ('CANCELLING', 'CANCELLED')`,
    [gid, branch],
  );
}
