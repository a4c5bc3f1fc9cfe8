/**
 * The barrier of a TCC or SAGA participant: one row per (gid, branch). Repeats, a cancel before its
 * try, a try after its cancel: each cell of the table in docs/guide-sagas.md is one line here. Local
 * mode: the effect is in the database of the row, in the same transaction.
 */
import { ClaimTable } from '../claim/claim-table.ts';
import type {
  SqlAnswer,
  SqlDatabase,
  SqlDialect,
  SqlServer,
  SqlSession,
  SqlStep,
} from '../contract/sql-session.ts';
import { together } from '../contract/sql-together.ts';
import { fingerprintOf } from '../core/fingerprint.ts';
import { functionOption, knownOptions } from '../core/option.ts';
import { sqlNowMs } from '../core/sql-text.ts';
import { emit } from '../runtime/events.ts';
import { attemptIds, type Runtime, systemRuntime } from '../runtime/runtime.ts';
import {
  type BranchName,
  type BranchResult,
  type BranchState,
  checkBranch,
  conflict,
  horizonOption,
  keptResult,
  notTried,
  purgeBranches,
  refusedTry,
  refuseOtherMode,
  refuseOtherPayload,
  storedValue,
  branchTable as table,
} from './branch.ts';
import { refuseOld } from './gid.ts';

/** Which branch, and what is asked of it. */
export interface BranchCall extends BranchName {
  /** The payload of a try: another one under the same branch is refused. */
  readonly payload?: unknown;
}

/** Options of a barrier. */
export interface BarrierOptions {
  /**
   * Calls about a gid older than this are refused with GID_EXPIRED without a look: rows may be gone.
   *
   * @unit milliseconds, integer, 60_000 to 3_650 days
   * @default 2_592_000_000 (30 days)
   */
  readonly horizonMs?: number;
  readonly runtime?: Runtime;
}

/** Guards branches. */
export interface Barrier {
  /**
   * Runs `body` at most once per op, in your open transaction, and only where the state allows it.
   * Throwing rolls everything back with your transaction and leaves the branch as it was, also when you
   * catch the error and commit: a savepoint is set around the body.
   *
   * @throws OPTION_INVALID, GID_EXPIRED, BRANCH_NOT_TRIED (retry later), BRANCH_REFUSED (a try after its
   * cancel: business says no), BRANCH_CONFLICT (confirmed and cancelled: park it), BRANCH_MISMATCH
   */
  call<T>(sql: SqlSession, call: BranchCall, body: () => Promise<T>): Promise<BranchResult<T>>;
  /**
   * The same in a transaction of its own, which is cheaper: the claim leaves with BEGIN, the result with
   * COMMIT. A deadlock or serialization failure is thrown as the database says it: run it again.
   *
   * @throws as {@link Barrier.call}
   */
  transact<T, Tx>(
    database: SqlDatabase<Tx>,
    call: BranchCall,
    body: (sql: SqlSession, tx: Tx) => Promise<T>,
  ): Promise<BranchResult<T>>;
  /** Deletes final rows of both modes, made more than twice the horizon ago; returns how many went. */
  purge(sql: Pick<SqlSession, 'query' | 'dialect'>, limit?: number): Promise<number>;
}

/** @throws OPTION_INVALID */
export function createBarrier(options: BarrierOptions = {}): Barrier {
  knownOptions('barrier options', options, ['horizonMs', 'runtime']);
  const horizonMs = horizonOption(options.horizonMs);
  const runtime = options.runtime ?? systemRuntime;
  const nextToken = attemptIds(runtime);
  const entryOf = (call: BranchCall, body: unknown): Entry => {
    knownOptions('branch call', call, ['gid', 'branch', 'op', 'payload']);
    checkBranch(call);
    functionOption('body', body);
    refuseOld(call.gid, runtime.wallMs(), horizonMs);
    return call.op === 'confirm' ? confirming(call) : claiming(call, nextToken());
  };
  const told = <T>({ op, branch }: BranchCall, { result }: Ended<T>): BranchResult<T> => {
    emit('saga', { type: `${op}-${result.kind}`, branch });
    return result;
  };
  return {
    async call(sql, call, body) {
      return told(call, await undoable(sql, entryOf(call, body), call, body));
    },
    async transact(database, call, body) {
      const entry = entryOf(call, body);
      const ended = await database.transaction(
        (sql, tx, answers) => settle(sql, { entry, answers, call }, () => body(sql, tx)),
        { first: (server) => entry.steps(server), last: ({ last }) => last },
      );
      return told(call, ended);
    },
    purge: (sql, limit) => purgeBranches(sql, { horizonMs, nowMs: runtime.wallMs() }, limit),
  };
}

/** How a call finds out whether its body may run. */
interface Entry {
  steps(server: SqlServer): readonly SqlStep[];
  /** By the answers to the steps: the state the body leads to, or how the call ends without it. */
  decide(
    sql: SqlSession,
    answers: readonly SqlAnswer[],
  ): Promise<BranchState | BranchResult<unknown>>;
}

/** How a call ended, and what is left to be sent. */
interface Ended<T> {
  readonly result: BranchResult<T>;
  readonly last: readonly SqlStep[];
}

const savepoint = { text: 'SAVEPOINT turngate_branch', values: [] };
const keep = { text: 'RELEASE SAVEPOINT turngate_branch', values: [] };
const undo = 'ROLLBACK TO SAVEPOINT turngate_branch';

/** A body that throws leaves nothing, also when the caller goes on and commits. */
async function undoable<T>(
  sql: SqlSession,
  entry: Entry,
  call: BranchCall,
  body: () => Promise<T>,
): Promise<Ended<T>> {
  try {
    const [, ...answers] = await together(sql, [savepoint, ...entry.steps(sql)]);
    const ended = await settle(sql, { entry, answers, call }, body);
    await together(sql, [...ended.last, keep]);
    return ended;
  } catch (error) {
    // A deadlock has rolled everything back, savepoint included: the first error is the news.
    await sql.query(undo, []).catch(() => undefined);
    throw error;
  }
}

async function settle<T>(
  sql: SqlSession,
  { entry, answers, call }: { entry: Entry; answers: readonly SqlAnswer[]; call: BranchCall },
  body: () => Promise<T>,
): Promise<Ended<T>> {
  const state = await entry.decide(sql, answers);
  if (typeof state !== 'string') return { result: state as BranchResult<T>, last: [] };
  const value = await body();
  const kept = call.op === 'try' ? keptResult(call, value) : null;
  if (kept === null) return { result: { kind: 'ran', state, value }, last: [] };
  const text = `UPDATE ${table} SET result = $3 WHERE gid = $1 AND branch = $2`;
  const last = [{ text, values: [call.gid, call.branch, kept] }];
  return { result: { kind: 'ran', state, value: storedValue<T>(kept) }, last };
}

const branches = new ClaimTable({
  table,
  key: ['gid', 'branch'],
  fresh: { state: '{}', digest: '{}', first_op: '{}', created_ms: '{now}', updated_ms: '{now}' },
  read: { state: 'state', digest: 'digest', result: 'result', mode: 'mode' },
});

/** Insert first, also for a cancel: the row it leaves refuses the try that comes late. */
function claiming(call: BranchCall, token: string): Entry {
  const digest = fingerprintOf(call.payload ?? null);
  const fresh = call.op === 'try' ? 'TRIED' : 'SUSPENDED';
  const claim = { key: [call.gid, call.branch], values: [fresh, digest, call.op], token };
  return {
    steps: (server) => branches.steps(server, claim),
    async decide(sql, answers) {
      const { ours, row } = await branches.claimed(sql, claim, answers);
      refuseOtherMode(call, row['mode'], 'local');
      const state = row['state'] as BranchState;
      if (call.op === 'cancel') {
        if (ours) return { kind: 'empty', state: 'SUSPENDED', value: undefined };
        return await cancel(sql, call, state);
      }
      if (ours) return 'TRIED';
      if (state === 'SUSPENDED' || state === 'CANCELLED') throw refusedTry(call, state);
      refuseOtherPayload(call, row['digest'], digest);
      return { kind: 'replayed', state, value: storedValue(row['result']) };
    },
  };
}

async function cancel(
  sql: SqlSession,
  call: BranchCall,
  state: BranchState,
): Promise<BranchState | BranchResult<unknown>> {
  if (state === 'CONFIRMED') throw conflict(call, state);
  if (state !== 'TRIED') return { kind: 'replayed', state, value: undefined };
  const [moved] = await together(sql, [moveTo('CANCELLED', sql.dialect, call)]);
  if (moved?.affectedRows === 0) throw conflict(call, state);
  return 'CANCELLED';
}

/** Never a row for it: its try may still be on its way. */
function confirming(call: BranchCall): Entry {
  return {
    steps: ({ dialect }) => [moveTo('CONFIRMED', dialect, call)],
    async decide(sql, [moved]) {
      if (moved !== undefined && moved.affectedRows > 0) return 'CONFIRMED';
      const row = await read(sql, call);
      if (row === undefined) throw notTried(call);
      refuseOtherMode(call, row['mode'], 'local');
      const state = row['state'] as BranchState;
      if (state === 'CONFIRMED') return { kind: 'replayed', state, value: undefined };
      throw conflict(call, state);
    },
  };
}

/** Compare and set: the old state is in the condition, the new one differs, so the count is true. */
function moveTo(state: BranchState, dialect: SqlDialect, { gid, branch }: BranchCall): SqlStep {
  return {
    text: `UPDATE ${table} SET state = $3, updated_ms = ${sqlNowMs[dialect]}
     WHERE gid = $1 AND branch = $2 AND state = 'TRIED' AND mode = 'local'`,
    values: [gid, branch, state],
  };
}

async function read(
  sql: SqlSession,
  { gid, branch }: BranchCall,
): Promise<Record<string, unknown> | undefined> {
  const forUpdate = sql.dialect === 'sqlite' ? '' : 'FOR UPDATE';
  const { rows } = await sql.query(
    `SELECT state, mode FROM ${table} WHERE gid = $1 AND branch = $2 ${forUpdate}`,
    [gid, branch],
  );
  return rows[0];
}
