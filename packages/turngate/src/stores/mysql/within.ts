/**
 * Claim, work and record inside a transaction the caller owns. The row is inserted first and made final
 * after the work: until the caller ends the transaction it tells everybody else that the key is taken.
 */
import type { Attempt, Claim, Work, WorkResult } from '../../contract/record-store.ts';
import { isSqlSession, type SqlSession } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { conflictError } from '../sql/sql-error.ts';
import { lookAtRival, type Seen, type Taken, takenOf } from './claiming.ts';
import type { Answer, Link } from './driver.ts';
import {
  endedError,
  isConflict,
  isDuplicate,
  isLocked,
  isSavepointGone,
  ourStoreError,
  workError,
} from './mysql-error.ts';
import { poisonable, unwatched } from './poison.ts';
import { proveTransaction } from './ready-session.ts';
import * as sql from './statements.ts';

/** Savepoints of one name replace each other, so nested operations need names of their own. */
let savepoints = 0;

/** Owners of work in progress: an uncommitted row of theirs is seen by their own transaction only. */
const runningHere = new Set<string>();

interface Place {
  readonly link: Link;
  readonly claim: Claim;
  readonly names: sql.ClaimNames;
  readonly savepoint: string;
}

/** The store's `within`. */
export async function attemptWithin<Tx>(
  tx: Tx,
  link: Link,
  claim: Claim,
  work: Work<Tx>,
): Promise<Attempt> {
  const names = sql.namesOf(claim, link);
  const savepoint = `${sql.savepoint}_${++savepoints}`;
  const place = { link, claim, names, savepoint };
  let taken = 0;
  let seen: Seen;
  try {
    if (isSqlSession(tx)) await demandTransaction(tx);
    const [marked, claimed] = await link.batch([sql.mark(savepoint), sql.claim(names)]);
    const first = takenOf(claimed as Answer);
    taken = first.taken;
    if (marked?.inTransaction === false) {
      await link.batch(freeing(names, taken));
      throw new TurngateError('TRANSACTION_REQUIRED', 'within() needs an open transaction');
    }
    seen = await enter(place, first);
    if (seen.kind !== 'free') await link.batch([...undoing(savepoint), ...freeing(names, taken)]);
  } catch (error) {
    await letGo(place, taken);
    // Gone without a deadlock: innodb_rollback_on_timeout is on.
    if (isConflict(error) || isSavepointGone(error)) throw conflictError(error);
    throw ourStoreError(error);
  }
  if (seen.kind !== 'free') return seen;
  return await workWithin(tx, place, work, seen.nowMs);
}

/** Here the client does not tell whether a transaction is open. */
async function demandTransaction(session: SqlSession): Promise<void> {
  try {
    await proveTransaction(session);
  } catch (error) {
    if (!isSavepointGone(error)) throw error;
    const message = 'within() needs an open transaction';
    throw new TurngateError('TRANSACTION_REQUIRED', message, { cause: error });
  }
}

/** Looks, and inserts the row that says "taken" when nothing is in the way. */
async function enter(place: Place, first: Taken): Promise<Seen> {
  const { link, names } = place;
  const { taken, nowMs, found } = first;
  // Committed, or this transaction's own.
  if (found?.live) return { kind: 'found', record: found.record };
  if (found !== undefined && runningHere.has(found.record.owner)) {
    throw new TurngateError('OPERATION_NESTED', 'the same key is running in this transaction');
  }
  if (taken !== 2) return await lookAtRival(link, names, taken);
  const free: Seen = { kind: 'free', nowMs, old: found?.record.owner };
  const answer = await insertRunning(place, free.old, nowMs);
  if (answer === 'inserted') return free;
  // Another transaction of a caller has finished its work and is not committed.
  if (answer === 'locked') return { kind: 'busy', sameFingerprint: undefined };
  // Committed after this transaction's snapshot was taken.
  const [shown] = await link.batch([sql.selectLatest(names.id)]);
  const row = shown?.rows[0];
  const latest = row && sql.foundOf(row);
  if (latest?.live) return { kind: 'found', record: latest.record };
  if (latest !== undefined) {
    const again = await insertRunning(place, latest.record.owner, nowMs);
    if (again === 'inserted') return free;
  }
  return { kind: 'busy', sameFingerprint: undefined };
}

async function insertRunning(
  { link, claim, names }: Place,
  old: string | undefined,
  nowMs: number,
): Promise<'inserted' | 'duplicate' | 'locked'> {
  const placeholder = { state: sql.running, result: '' } as const;
  const insert = sql.insert(claim, names.id, nowMs, placeholder);
  const drop = old === undefined ? [] : [sql.dropOld(names.id, old)];
  try {
    await link.batch(withoutWaiting([...drop, insert], link.mariadb));
    return 'inserted';
  } catch (error) {
    if (isDuplicate(error)) return 'duplicate';
    if (isLocked(error)) return 'locked';
    throw error;
  } finally {
    if (!link.mariadb) await link.batch([waitAsBefore]).catch(() => undefined);
  }
}

const waitAsBefore = 'SET SESSION innodb_lock_wait_timeout = @turngate_wait';

/** MariaDB can refuse to wait at all; MySQL waits for at least one second. */
function withoutWaiting(texts: readonly string[], mariadb: boolean): string[] {
  if (mariadb) return texts.map((text) => `SET STATEMENT innodb_lock_wait_timeout = 0 FOR ${text}`);
  return [
    'SET @turngate_wait = @@SESSION.innodb_lock_wait_timeout, SESSION innodb_lock_wait_timeout = 1',
    ...texts,
  ];
}

async function workWithin<Tx>(
  tx: Tx,
  place: Place,
  work: Work<Tx>,
  nowMs: number,
): Promise<Attempt> {
  const { link, claim, names } = place;
  // An ORM's handle is not wrapped: it is more than statements, and knows its own kind.
  const handle = isSqlSession(tx) ? unwatched(tx) : poisonable(tx);
  let result: WorkResult;
  runningHere.add(claim.owner);
  try {
    result = await work(handle.tx);
    await link.batch([...finishing(place, result, nowMs), ...freeing(names, 2)]);
  } catch (error) {
    // The caller may swallow this and commit: what the handler did must not be in that commit.
    const alive = await letGo(place, 2);
    if (isConflict(error) || isDuplicate(error)) throw conflictError(error);
    if (isSavepointGone(error)) {
      const deadlock = handle.poisonedBy();
      if (deadlock !== undefined) throw conflictError(deadlock);
      await dropRunning(place);
      throw endedError(error);
    }
    throw workError(error, alive);
  } finally {
    runningHere.delete(claim.owner);
    handle.end();
  }
  const { fingerprint, owner, retentionMs } = claim;
  const record = { state: result.state, fingerprint, owner, result: result.result };
  const times = { firstProcessedAtMs: nowMs, expiresAtMs: nowMs + retentionMs };
  return { kind: 'ran', record: { ...record, ...times } };
}

function finishing(
  { claim, names, savepoint }: Place,
  result: WorkResult,
  nowMs: number,
): string[] {
  if (result.state === 'refused') {
    return [...undoing(savepoint), sql.insert(claim, names.id, nowMs, result)];
  }
  return [sql.keep(savepoint), sql.finish(names.id, claim.owner, result)];
}

function undoing(savepoint: string): string[] {
  return [sql.undo(savepoint), sql.keep(savepoint)];
}

function freeing(names: sql.ClaimNames, taken: number): string[] {
  return taken > 0 ? [sql.release(names, taken)] : [];
}

/** Undoes the work and frees the locks. False when the connection is lost. */
async function letGo({ link, names, savepoint }: Place, taken: number): Promise<boolean> {
  await link.batch(undoing(savepoint)).catch(() => undefined); // Gone with its transaction.
  return await link.batch([...freeing(names, taken), 'DO 0']).then(
    () => true,
    () => false,
  );
}

/**
 * The handler has ended the caller's transaction: the row may be committed, and nobody works on it. What
 * the handler did since, in a transaction of its own making, goes too.
 */
async function dropRunning({ link, claim, names }: Place): Promise<void> {
  await link.batch(['ROLLBACK', sql.dropOld(names.id, claim.owner)]).catch(() => undefined);
}
