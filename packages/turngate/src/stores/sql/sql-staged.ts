/**
 * Staged operations in any SQL database. Every write of a hold is one guarded statement; only
 * take-overs, database steps and operators' verdicts need a transaction.
 */
import type { AlongWith } from '../../contract/record-store.ts';
import type { SqlDatabase, SqlResult, SqlSession, SqlValue } from '../../contract/sql-session.ts';
import type {
  HoldAnswer,
  Leaving,
  Opened,
  StagedClaim,
  StagedFilter,
  StagedHold,
  StagedRecord,
  StagedStore,
  StagedVerdict,
  StepResult,
  StepWrite,
  TakenOver,
} from '../../contract/staged-store.ts';
import { TurngateError } from '../../core/errors.ts';
import { type RecordId, recordIdDigest } from '../../core/record-id.ts';
import { decideIn, listPage, purgeBatch } from './staged-admin.ts';
import { recordOf, stepOf } from './staged-rows.ts';
import { type StagedStatements, stagedStatements } from './staged-statements.ts';

/** What the store has to know about its server besides SQL. */
export interface SqlStagedOptions {
  readonly name: string;
  readonly shared: boolean;
  /** The typed error of an error of one of our own statements. */
  readonly toError: (error: unknown) => TurngateError;
  /** Rolled back by the server for its own reasons: deadlock, serialization. */
  readonly isConflict: (error: unknown) => boolean;
}

const renewBatch = 200;
const conflictsMax = 5;

type Row = Record<string, unknown>;

class HoldLost extends Error {}

/** The store over any {@link SqlDatabase} with Turngate's tables. */
export class SqlStaged<Tx> implements StagedStore<Tx> {
  readonly name: string;
  readonly capabilities: { readonly durable: true; readonly shared: boolean };
  private readonly database: SqlDatabase<Tx>;
  private readonly options: SqlStagedOptions;
  private readonly sql: StagedStatements;

  constructor(database: SqlDatabase<Tx>, options: SqlStagedOptions) {
    this.database = database;
    this.options = options;
    this.name = options.name;
    this.capabilities = { durable: true, shared: options.shared };
    this.sql = stagedStatements(database.dialect);
  }

  async read(id: RecordId): Promise<StagedRecord | undefined> {
    const row = (await this.query(this.sql.read, [recordIdDigest(id)])).rows[0];
    return row && recordOf(row);
  }

  async open(claim: StagedClaim): Promise<Opened> {
    const values = openValues(claim);
    for (;;) {
      const row = await this.insertAndRead(this.sql.open, values, (text, given) =>
        this.query(text, given),
      );
      // None: it was committed after this statement had begun, or purged in between.
      if (row !== undefined) return opened(claim, recordOf(row));
    }
  }

  async enqueue(tx: Tx, claim: StagedClaim): Promise<Opened> {
    const session = this.database.session(tx);
    const values = openValues(claim);
    const query = (text: string, given: readonly SqlValue[]): Promise<SqlResult> =>
      session.query(text, given);
    let row = await this.insertAndRead(this.sql.enqueue, values, query);
    row ??= (await session.query(this.sql.read, [recordIdDigest(claim.id)])).rows[0];
    if (row !== undefined) return await this.promiseAnew(session, claim, recordOf(row));
    const message = 'the record was made by a transaction this one cannot see: run it again';
    throw new TurngateError('TRANSACTION_CONFLICT', message);
  }

  async takeOver(
    claim: StagedClaim,
    how: { readonly seenAttempt: number; readonly when: 'due' | 'now' | 'fresh' },
  ): Promise<TakenOver | undefined> {
    const { sql } = this;
    const id = recordIdDigest(claim.id);
    const values: SqlValue[] = [id, claim.owner, how.seenAttempt, claim.leaseMs];
    if (how.when === 'fresh') values.push(claim.fingerprint, claim.input);
    return await this.transact(async (session) => {
      const attempt = how.seenAttempt + 1;
      const { affectedRows } = await session.query(sql.takeOver[how.when], values);
      if (affectedRows === 0) {
        // Ours already when the answer to an earlier try was lost.
        const again = await session.query(sql.isHeld, [id, claim.owner, attempt]);
        if (again.rows.length === 0) return undefined;
      }
      const adopt: [string, SqlValue[]] =
        how.when === 'fresh' ? [sql.forgetSteps, [id]] : [sql.adoptSteps, [id, attempt]];
      await session.query(...adopt);
      return await this.inspectIn(session, id);
    });
  }

  async renew(holds: readonly StagedHold[]): Promise<readonly HoldAnswer[]> {
    const answers: HoldAnswer[] = [];
    for (let from = 0; from < holds.length; from += renewBatch) {
      const part = holds.slice(from, from + renewBatch);
      const ids = part.map(({ id }) => recordIdDigest(id));
      const values = [...ids, ...part.map(({ owner }) => owner)];
      const { affectedRows } = await this.query(this.sql.renew(part.length), values);
      if (affectedRows === part.length) {
        answers.push(...part.map(() => 'ours' as const));
        continue;
      }
      const { rows } = await this.query(this.sql.stillHeld(part.length), values);
      const held = new Set(rows.map((row) => String(row['id'])));
      answers.push(...ids.map((id): HoldAnswer => (held.has(id) ? 'ours' : 'lost')));
    }
    return answers;
  }

  async startStep(hold: StagedHold, step: StepWrite, sleepMs?: number): Promise<HoldAnswer> {
    const values = stepValues(hold, step, 'started', null, sleepMs ?? null);
    const { affectedRows } = await this.query(this.sql.recordStep, values);
    return affectedRows > 0 ? 'ours' : await this.wroteStep(hold, step.name);
  }

  async finishStep(
    hold: StagedHold,
    step: StepWrite,
    { state, result }: StepResult,
    started: boolean,
  ): Promise<HoldAnswer> {
    const { affectedRows } = started
      ? await this.query(this.sql.finishStep, [...stepKey(hold, step.name), state, result])
      : await this.query(this.sql.recordStep, stepValues(hold, step, state, result, null));
    return affectedRows > 0 ? 'ours' : await this.wroteStep(hold, step.name);
  }

  async dropStep(hold: StagedHold, name: string): Promise<HoldAnswer> {
    const { affectedRows } = await this.query(this.sql.dropStep, stepKey(hold, name));
    if (affectedRows > 0) return 'ours';
    const [held, step] = [await this.isHeld(hold), await this.stepRow(hold, name)];
    return held && step === undefined ? 'ours' : 'lost';
  }

  async transactStep(
    hold: StagedHold,
    step: StepWrite,
    work: (tx: Tx) => Promise<string>,
  ): Promise<
    | { readonly kind: 'ran' | 'repeated'; readonly result: string }
    | { readonly kind: 'lost' }
    | { readonly kind: 'conflict'; readonly cause: unknown }
  > {
    let phase: 'begin' | 'work' | 'record' = 'begin';
    try {
      const result = await this.database.transaction(async (session, tx) => {
        phase = 'work';
        const encoded = await work(tx);
        phase = 'record';
        const values = stepValues(hold, step, 'done', encoded, null);
        const { affectedRows } = await session.query(this.sql.recordStepOnce, values);
        if (affectedRows === 0) throw new HoldLost(); // Rolls the effect back.
        return encoded;
      });
      return { kind: 'ran', result };
    } catch (error) {
      if (error instanceof HoldLost) return { kind: 'lost' };
      if (this.options.isConflict(error)) return { kind: 'conflict', cause: error };
      if ((phase as string) === 'work') throw error; // The handler's own.
      // Our record, or the commit, did not answer, or an earlier try of ours had committed.
      const row = phase === 'begin' ? undefined : await this.stepRow(hold, step.name);
      if (row?.result === undefined) throw this.options.toError(error);
      return { kind: 'repeated', result: row.result };
    }
  }

  async end(
    hold: StagedHold,
    { state, result }: StepResult,
    retentionMs: number,
  ): Promise<HoldAnswer> {
    const values = [...holdValues(hold), state, result, retentionMs];
    const { affectedRows } = await this.query(this.sql.end, values);
    return affectedRows > 0 ? 'ours' : await this.wroteState(hold, [state]);
  }

  async leave(hold: StagedHold, leaving: Leaving): Promise<HoldAnswer> {
    const { state, dueInMs = null, error = null, failures, retentionMs } = leaving;
    const keepMs = state === 'released' ? retentionMs : null;
    const values = [...holdValues(hold), state, dueInMs, failures, error, keepMs];
    const { affectedRows } = await this.query(this.sql.leave, values);
    return affectedRows > 0 ? 'ours' : await this.wroteState(hold, [state]);
  }

  async due(operations: readonly string[], limit: number): Promise<readonly StagedRecord[]> {
    if (operations.length === 0) return [];
    const { rows } = await this.query(this.sql.due(operations.length, limit), operations);
    return rows.map(recordOf);
  }

  async list(
    filter: StagedFilter,
  ): Promise<{ readonly records: readonly StagedRecord[]; readonly cursor: string | undefined }> {
    return await listPage(this.sql, filter, (text, values) => this.query(text, values));
  }

  async inspect(id: RecordId): Promise<TakenOver | undefined> {
    const digest = recordIdDigest(id);
    return await this.transact((session) => this.inspectIn(session, digest));
  }

  async decide(
    id: RecordId,
    verdict: StagedVerdict,
    also?: AlongWith,
  ): Promise<'done' | 'missing' | 'refused'> {
    return await this.transact((session) => decideIn(session, this.sql, id, verdict, also));
  }

  async purge({ batchRows, batches }: { batchRows: number; batches: number }): Promise<number> {
    let purged = 0;
    for (let i = 0; i < batches; i++) {
      const went = await this.transact((session) => purgeBatch(session, this.sql, batchRows));
      purged += went;
      if (went < batchRows) break;
    }
    return purged;
  }

  private async promiseAnew(
    session: SqlSession,
    claim: StagedClaim,
    record: StagedRecord,
  ): Promise<Opened> {
    if (record.state !== 'released' && !record.expired) return opened(claim, record);
    const id = recordIdDigest(claim.id);
    const payload = [claim.leaseMs, claim.fingerprint, claim.input];
    const values = [id, claim.owner, record.attempt, ...payload];
    const { affectedRows } = await session.query(this.sql.promise, values);
    if (affectedRows > 0) await session.query(this.sql.forgetSteps, [id]);
    return { kind: affectedRows > 0 ? 'claimed' : 'found', record };
  }

  private async insertAndRead(
    texts: readonly string[],
    values: readonly SqlValue[],
    query: (text: string, values: readonly SqlValue[]) => Promise<SqlResult>,
  ): Promise<Row | undefined> {
    const [first, second] = texts as [string, string | undefined];
    const { rows } = await query(first, values);
    if (second === undefined) return rows[0];
    return (await query(second, values.slice(0, 1))).rows[0];
  }

  private async inspectIn(session: SqlSession, id: string): Promise<TakenOver | undefined> {
    const row = (await session.query(this.sql.read, [id])).rows[0];
    if (row === undefined) return undefined;
    const { rows } = await session.query(this.sql.steps, [id]);
    return { record: recordOf(row), steps: rows.map(stepOf) };
  }

  private async isHeld(hold: StagedHold): Promise<boolean> {
    return (await this.query(this.sql.isHeld, holdValues(hold))).rows.length > 0;
  }

  private async stepRow(
    { id }: StagedHold,
    name: string,
  ): Promise<ReturnType<typeof stepOf> | undefined> {
    const row = (await this.query(this.sql.step, [recordIdDigest(id), name])).rows[0];
    return row && stepOf(row);
  }

  /** After a write that touched nothing: had an earlier try of the same hold written it? */
  private async wroteStep(hold: StagedHold, name: string): Promise<HoldAnswer> {
    return (await this.stepRow(hold, name))?.attempt === hold.attempt ? 'ours' : 'lost';
  }

  private async wroteState(hold: StagedHold, states: readonly string[]): Promise<HoldAnswer> {
    const record = await this.read(hold.id);
    const ours = record?.owner === hold.owner && record.attempt === hold.attempt;
    return ours && states.includes(record.state) ? 'ours' : 'lost';
  }

  private async query(text: string, values: readonly SqlValue[]): Promise<SqlResult> {
    return await this.again(() => this.database.query(text, values));
  }

  private async transact<T>(work: (session: SqlSession) => Promise<T>): Promise<T> {
    return await this.again(() => this.database.transaction(work));
  }

  /** Statements of ours that the server rolled back changed nothing and may be sent again at once. */
  private async again<T>(send: () => Promise<T>): Promise<T> {
    for (let conflicts = 0; ; conflicts++) {
      try {
        return await send();
      } catch (error) {
        if (conflicts < conflictsMax && this.options.isConflict(error)) continue;
        throw this.options.toError(error);
      }
    }
  }
}

function opened(claim: StagedClaim, record: StagedRecord): Opened {
  return { kind: record.owner === claim.owner ? 'claimed' : 'found', record };
}

function openValues({ id, fingerprint, input, owner, leaseMs }: StagedClaim): SqlValue[] {
  const { operation, scope, key } = id;
  return [recordIdDigest(id), operation, scope, key, fingerprint, input, owner, leaseMs];
}

function holdValues({ id, owner, attempt }: StagedHold): SqlValue[] {
  return [recordIdDigest(id), owner, attempt];
}

function stepKey({ id, attempt }: StagedHold, name: string): SqlValue[] {
  return [recordIdDigest(id), name, attempt];
}

function stepValues(
  hold: StagedHold,
  { name, seq, kind, onUnknown, fingerprint }: StepWrite,
  state: string,
  result: string | null,
  sleepMs: number | null,
): SqlValue[] {
  const step = [name, seq, kind, onUnknown, fingerprint ?? null, state, result, sleepMs];
  return [...holdValues(hold), ...step];
}
