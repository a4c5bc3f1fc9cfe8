/**
 * Claim, work and record inside a transaction the caller owns: through the handle itself, or through
 * whatever an ORM speaks to it with.
 */
import type { Attempt, Claim, Work, WorkResult } from '../../contract/record-store.ts';
import type { SqlSession } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { recordIdDigest } from '../../core/record-id.ts';
import { conflictError } from '../sql/sql-error.ts';
import {
  endedError,
  isBusy,
  isConflict,
  isSavepointGone,
  ourStoreError,
  sqliteError,
} from './sqlite-error.ts';
import * as sql from './statements.ts';

/** The caller's transaction. */
export interface Place<Tx> {
  readonly tx: Tx;
  readonly session: SqlSession;
  /** Identities whose work runs in it. */
  readonly running: Set<string>;
}

type Seen =
  | { readonly kind: 'free'; readonly nowMs: number }
  | Extract<Attempt, { kind: 'found' | 'busy' }>;

/** Savepoints of one name hide each other, so nested operations need names of their own. */
let savepoints = 0;

/** The store's `within`. */
export async function attemptWithin<Tx>(
  place: Place<Tx>,
  claim: Claim,
  work: Work<Tx>,
): Promise<Attempt> {
  const digest = recordIdDigest(claim.id);
  if (place.running.has(digest)) {
    throw new TurngateError('OPERATION_NESTED', 'the same key is running in this transaction');
  }
  const savepoint = `turngate_${++savepoints}`;
  let seen: Seen;
  try {
    await proveOpen(place.session, savepoint);
    seen = await enter(place.session, digest);
    if (seen.kind !== 'free') await undoing(place.session, savepoint);
  } catch (error) {
    await undoing(place.session, savepoint).catch(() => undefined);
    if (isConflict(error)) throw conflictError(error);
    throw ourStoreError(error);
  }
  if (seen.kind !== 'free') return seen;
  place.running.add(digest);
  try {
    return await workWithin(place, savepoint, claim, work, seen.nowMs);
  } finally {
    place.running.delete(digest);
  }
}

/**
 * Outside a transaction SAVEPOINT begins one and RELEASE of it commits, so an unused savepoint proves
 * nothing by itself; but BEGIN inside a transaction is an error.
 */
async function proveOpen(session: SqlSession, savepoint: string): Promise<void> {
  const open = await session.query('BEGIN', []).then(
    () => false,
    () => true,
  );
  if (!open) {
    await session.query(sql.rollback, []);
    throw new TurngateError('TRANSACTION_REQUIRED', 'within() needs an open transaction');
  }
  await session.query(sql.mark(savepoint), []);
}

/** Takes the write lock, by the first write, before it looks. */
async function enter(session: SqlSession, digest: string): Promise<Seen> {
  try {
    await session.query(sql.dropExpired, [digest]);
  } catch (error) {
    // Somebody else writes: the caller may come again, unless it has read an older state.
    if (isBusy(error)) return { kind: 'busy', sameFingerprint: undefined };
    throw error;
  }
  const [row] = (await session.query(sql.look, [digest])).rows;
  const { nowMs, live } = sql.lookedOf(row ?? {});
  return live === undefined ? { kind: 'free', nowMs } : { kind: 'found', record: live };
}

async function workWithin<Tx>(
  { tx, session }: Place<Tx>,
  savepoint: string,
  claim: Claim,
  work: Work<Tx>,
  nowMs: number,
): Promise<Attempt> {
  let result: WorkResult;
  try {
    result = await work(tx);
    if (result.state === 'refused') await session.query(sql.undo(savepoint), []);
    await session.query(sql.keep(savepoint), []);
    await session.query(sql.insert, sql.insertValues(claim, nowMs, result));
  } catch (error) {
    // The caller may swallow this and commit: what the handler did must not be in that commit.
    await undoing(session, savepoint).catch(() => undefined);
    if (isConflict(error)) throw conflictError(error);
    if (isSavepointGone(error)) throw endedError(error);
    throw sqliteError(error) ?? error;
  }
  return { kind: 'ran', record: sql.recordFrom(claim, nowMs, result) };
}

async function undoing(session: SqlSession, savepoint: string): Promise<void> {
  await session.query(sql.undo(savepoint), []);
  await session.query(sql.keep(savepoint), []);
}
