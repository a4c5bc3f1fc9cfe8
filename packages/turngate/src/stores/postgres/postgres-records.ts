/**
 * Records in PostgreSQL. The claim is a transaction-level advisory lock plus a read of the record, and
 * the only row written is the finished one: a first call costs one insert, sent with COMMIT, and a
 * crash at any line leaves nothing to clean up. The unique index decides even if the lock did not.
 */
import {
  type Attempt,
  type Claim,
  CommitUnknown,
  type RecordAdmin,
  type RecordCapabilities,
  type RecordStore,
  type SingleWrite,
  type SingleWriteAttempt,
  type StoredRecord,
  type Work,
  type WorkResult,
} from '../../contract/record-store.ts';
import type { SqlAnswer } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { hash64 } from '../../core/hash64.ts';
import { type RecordId, recordIdText } from '../../core/record-id.ts';
import { rewritePlaces } from '../../core/sql-text.ts';
import { conflictError, isConnectionLost, sqlState } from '../sql/sql-error.ts';
import type { PostgresDriver, PostgresSession, PostgresTransaction, Row } from './driver.ts';
import { oneStatement } from './one-statement.ts';
import { isConflict, ourStoreError, postgresError, workError } from './postgres-error.ts';
import type { Step } from './statements.ts';
import * as sql from './statements.ts';

type Seen =
  | { readonly kind: 'free'; readonly nowMs: number }
  | Exclude<Attempt, { kind: 'ran' | 'conflict' }>;

const tableStart = '(0,0)';

/** The record store over any PostgreSQL driver. */
export class PostgresRecords<Tx> implements RecordStore<Tx> {
  readonly name = 'postgres';
  readonly capabilities: RecordCapabilities;
  readonly admin: RecordAdmin;
  private readonly driver: PostgresDriver<Tx>;
  /** Where the next purge goes on: the last place of the batch before, while a pass is under way. */
  private purgePlace = tableStart;

  constructor(driver: PostgresDriver<Tx>, admin: RecordAdmin) {
    this.driver = driver;
    this.admin = admin;
    this.capabilities = { atomicWithEffect: true, durable: true, shared: driver.shared };
  }

  async read(id: RecordId): Promise<StoredRecord | undefined> {
    try {
      const row = await this.row({ statement: sql.read, values: idValues(id) });
      return row !== undefined && isLive(row) ? recordOf(row) : undefined;
    } catch (error) {
      throw ourStoreError(error);
    }
  }

  async attempt(claim: Claim, work: Work<Tx>): Promise<Attempt> {
    const opened = await this.open(claim);
    if (!('transaction' in opened)) return opened;
    const { transaction, nowMs } = opened;
    let result: WorkResult;
    try {
      result = await this.inside(() => work(transaction.tx));
    } catch (error) {
      const alive = await transaction.rollback(error);
      if (isConflict(error)) return { kind: 'conflict', cause: error };
      throw workError(error, alive);
    }
    if (result.state === 'refused') {
      await transaction.rollback();
      return await this.storeRefusal(claim, result);
    }
    return await commitWith(transaction, claim, result, nowMs);
  }

  async within(tx: Tx, claim: Claim, work: Work<Tx>): Promise<Attempt> {
    const session = this.driver.adopt(tx);
    if (session.inTransaction() === false) {
      throw new TurngateError('TRANSACTION_REQUIRED', 'within() needs an open transaction');
    }
    const lead = [{ statement: sql.savepoint, values: [] }, ...claimSteps(claim)];
    let seen: Seen;
    try {
      const [, ...answers] = await session.batch(lead);
      seen = await this.look(session, claim, answers);
      // Undoing the savepoint also lets go of the advisory locks taken since.
      if (seen.kind !== 'free') await session.batch(undoSteps);
    } catch (error) {
      throw isConflict(error) ? conflictError(error) : ourStoreError(error);
    }
    if (seen.kind !== 'free') return seen;
    const inside: Work<Tx> = (own) => this.inside(() => work(own));
    return await workWithin(tx, session, claim, inside, seen.nowMs);
  }

  private inside<T>(work: () => Promise<T>): Promise<T> {
    return this.driver.enter === undefined ? work() : this.driver.enter(work);
  }

  async probe(claim: Claim): Promise<Exclude<Attempt, { kind: 'ran' }> | { kind: 'free' }> {
    const opened = await this.open(claim);
    if (!('transaction' in opened)) return opened;
    await opened.transaction.rollback();
    return { kind: 'free' };
  }

  async singleWrite(claim: Claim, write: SingleWrite): Promise<SingleWriteAttempt> {
    try {
      const one = oneStatement(write.statement);
      return one === undefined
        ? await this.writeInFunction(claim, write)
        : await this.writeAtOnce(claim, one, write);
    } catch (error) {
      if (sqlState(error) === 'TG001') return { kind: 'nothing' };
      if (isConflict(error) || isDuplicateRecord(error)) return { kind: 'conflict', cause: error };
      if (isConnectionLost(error)) throw new CommitUnknown(error);
      throw postgresError(error) ?? error;
    }
  }

  /** Writes if nothing is there, in one trip; what is there then is read. */
  private async writeAtOnce(
    claim: Claim,
    statement: sql.Statement,
    { values }: SingleWrite,
  ): Promise<SingleWriteAttempt> {
    const { id, fingerprint, owner, retentionMs } = claim;
    const keys = idValues(id);
    const own = [...keys, fingerprint, owner, String(retentionMs)];
    const [answer] = await this.driver.run([{ statement, values: [...own, ...values] }]);
    const row = answer?.rows[0];
    if (row !== undefined) {
      const [result, nowMs] = row as [string, string];
      const record = recordFrom(claim, { state: 'done', result }, Number(nowMs));
      return { kind: 'ran', record };
    }
    const seen = await this.row({ statement: sql.read, values: keys });
    return seen === undefined ? { kind: 'nothing' } : await this.known(claim, seen);
  }

  /** Whatever the write looks like: the function inserts first, and runs it as text. */
  private async writeInFunction(claim: Claim, write: SingleWrite): Promise<SingleWriteAttempt> {
    const { id, fingerprint, owner, retentionMs } = claim;
    const own = [...idValues(id), fingerprint, owner, String(retentionMs)];
    // PL/pgSQL binds one array: its elements are the statement's values.
    const statement = rewritePlaces(write.statement, (index) => `($1)[${index}]`);
    const values = [...own, statement, arrayText(write.values)];
    const row = await this.row({ statement: sql.singleWrite, values });
    if (row === undefined) return { kind: 'conflict', cause: new Error('purged meanwhile') };
    return await this.known(claim, row);
  }

  private async known(claim: Claim, row: Row): Promise<SingleWriteAttempt> {
    if (isLive(row)) {
      const record = recordOf(row);
      return { kind: record.owner === claim.owner ? 'ran' : 'found', record };
    }
    await this.driver.run([{ statement: sql.dropExpired, values: idValues(claim.id) }]);
    return { kind: 'conflict', cause: new Error('the record had expired') };
  }

  private async row(step: Step): Promise<Row | undefined> {
    const [answer] = await this.driver.run([step]);
    return answer?.rows[0];
  }

  async purge({ batchRows, batches }: { batchRows: number; batches: number }): Promise<number> {
    let purged = 0;
    for (let i = 0; i < batches; i++) {
      const from = this.purgePlace;
      const step = { statement: sql.purge, values: [String(batchRows), from] };
      const row = await this.row(step).catch((error: unknown) => {
        throw ourStoreError(error);
      });
      const [gone, seen, place] = row as Row;
      purged += Number(gone);
      this.purgePlace = Number(seen) < batchRows ? tableStart : (place as string);
      // Only a pass from the start that finds nothing has seen everything.
      if (seen !== '0') continue;
      if (from === tableStart) break;
      i--; // Nothing behind that place: that was no batch.
    }
    return purged;
  }

  /** BEGIN and claim in one trip; leaves at once, connection given back, when it is not ours. */
  private async open(
    claim: Claim,
  ): Promise<
    { transaction: PostgresTransaction<Tx>; nowMs: number } | Exclude<Seen, { kind: 'free' }>
  > {
    let transaction: PostgresTransaction<Tx> | undefined;
    try {
      const begun = await this.driver.begin(claimSteps(claim));
      transaction = begun.transaction;
      const seen = await this.look(transaction.session, claim, begun.answers);
      if (seen.kind === 'free') return { transaction, nowMs: seen.nowMs };
      await transaction.rollback();
      return seen;
    } catch (error) {
      await transaction?.rollback();
      throw ourStoreError(error);
    }
  }

  private async look(
    session: PostgresSession,
    claim: Claim,
    answers: readonly SqlAnswer[],
  ): Promise<Seen> {
    const [claims, reads] = answers as [SqlAnswer, SqlAnswer];
    const [[payload, claimed, nowMs]] = claims.rows as [Row];
    const [found] = reads.rows;
    if (found !== undefined && isLive(found)) return { kind: 'found', record: recordOf(found) };
    if (claimed !== 'true') {
      const ask = { statement: sql.samePayload, values: lockValues(claim) };
      const [answer] = await session.batch([ask]);
      return { kind: 'busy', sameFingerprint: answer?.rows[0]?.[0] === 'true' };
    }
    // Somebody holds the payload lock exclusively for a moment, to look: come back in a moment.
    if (payload !== 'true') return { kind: 'busy', sameFingerprint: undefined };
    if (found !== undefined) {
      await session.batch([{ statement: sql.dropExpired, values: idValues(claim.id) }]);
    }
    return { kind: 'free', nowMs: Number(nowMs) };
  }

  /** A refusal is stored without the effects that led to it, in a transaction of its own. */
  private async storeRefusal(claim: Claim, result: WorkResult): Promise<Attempt> {
    const opened = await this.open(claim);
    if (!('transaction' in opened)) return opened;
    return await commitWith(opened.transaction, claim, result, opened.nowMs);
  }
}

async function commitWith<Tx>(
  transaction: PostgresTransaction<Tx>,
  claim: Claim,
  result: WorkResult,
  nowMs: number,
): Promise<Attempt> {
  if (transaction.session.inTransaction() === false) {
    transaction.destroy();
    const message = 'the handler ended the transaction it was given; its work is not protected';
    throw new TurngateError('TRANSACTION_REQUIRED', message, { outcome: 'unknown' });
  }
  try {
    await transaction.commit(finishSteps(claim, result, nowMs));
  } catch (error) {
    if (isConnectionLost(error)) throw new CommitUnknown(error);
    // The server answered, so it answered "no": the transaction is rolled back.
    if (isConflict(error) || isDuplicateRecord(error)) return { kind: 'conflict', cause: error };
    throw postgresError(error) ?? error;
  }
  return { kind: 'ran', record: recordFrom(claim, result, nowMs) };
}

async function workWithin<Tx>(
  tx: Tx,
  session: PostgresSession,
  claim: Claim,
  work: Work<Tx>,
  nowMs: number,
): Promise<Attempt> {
  const [undo, keep] = undoSteps;
  let result: WorkResult;
  try {
    result = await work(tx);
    const first = result.state === 'refused' ? [undo] : [];
    await session.batch([...first, ...finishSteps(claim, result, nowMs), keep]);
  } catch (error) {
    // The caller may swallow this and commit: what the handler did must not be in that commit.
    const alive = await session.batch(undoSteps).then(
      () => true,
      () => false, // Only if all is lost anyway.
    );
    if (isConflict(error) || isDuplicateRecord(error)) throw conflictError(error);
    throw workError(error, alive);
  }
  return { kind: 'ran', record: recordFrom(claim, result, nowMs) };
}

function isDuplicateRecord(error: unknown): boolean {
  const { constraint, constraint_name } = (error ?? {}) as Record<string, unknown>;
  // Of the table or of one of its partitions.
  return /^turngate_record(_\w+)?_pkey$/.test(String(constraint ?? constraint_name));
}

const undoSteps: readonly [sql.Step, sql.Step] = [
  { statement: sql.rollbackToSavepoint, values: [] },
  { statement: sql.releaseSavepoint, values: [] },
];

function claimSteps(claim: Claim): sql.Step[] {
  return [
    { statement: sql.claim, values: lockValues(claim) },
    // A later statement, so a later snapshot: sees whatever committed before the lock was ours.
    { statement: sql.read, values: idValues(claim.id) },
  ];
}

function finishSteps(claim: Claim, result: WorkResult, nowMs: number): sql.Step[] {
  const { id, fingerprint, owner, retentionMs } = claim;
  const values = [...idValues(id), result.state, fingerprint, owner, result.result];
  return [{ statement: sql.insert, values: [...values, String(nowMs), String(retentionMs)] }];
}

/** An array of texts as PostgreSQL reads it. */
function arrayText(values: readonly (string | null)[]): string {
  const quoted = values.map((value) =>
    value === null ? 'NULL' : `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`,
  );
  return `{${quoted.join(',')}}`;
}

function idValues({ operation, scope, key }: RecordId): string[] {
  return [operation, scope, key];
}

/** 64 bits each. Two identities that meet in a lock only wait for each other; the index decides. */
function lockValues(claim: Claim): string[] {
  const id = recordIdText(claim.id);
  return [hash64(`${id}\n${claim.fingerprint}`).toString(), hash64(id).toString()];
}

function recordOf(row: Row): StoredRecord {
  const [state, fingerprint, owner, result, firstMs, expiresMs] = row as string[];
  return {
    state: state as StoredRecord['state'],
    fingerprint: fingerprint as string,
    owner: owner as string,
    result: result as string,
    firstProcessedAtMs: Number(firstMs),
    expiresAtMs: Number(expiresMs),
  };
}

function isLive(row: Row): boolean {
  return row[6] === 'true';
}

function recordFrom(claim: Claim, { state, result }: WorkResult, nowMs: number): StoredRecord {
  const { fingerprint, owner, retentionMs } = claim;
  const expiresAtMs = nowMs + retentionMs;
  // Field by field: spreading an object costs more than all of this, on every first call.
  return { state, fingerprint, owner, result, firstProcessedAtMs: nowMs, expiresAtMs };
}
