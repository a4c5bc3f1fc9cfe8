/**
 * Records in SQLite. The claim is the file's write lock, taken before the record is read: one writer at
 * a time in all processes of the host. The only row written is the finished one, with the effect.
 */
import {
  type Attempt,
  type Claim,
  CommitUnknown,
  type RecordAdmin,
  type RecordCapabilities,
  type RecordStore,
  type StoredRecord,
  type Work,
  type WorkResult,
} from '../../contract/record-store.ts';
import { isSqlSession } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { type RecordId, recordIdDigest } from '../../core/record-id.ts';
import { connectionOf, inTransaction, SqliteConnection, type SqliteLike } from './client.ts';
import { isConflict, ourStoreError, sqliteCode, sqliteError } from './sqlite-error.ts';
import * as sql from './statements.ts';
import { begin, commit, type Patience, rollBack } from './transaction.ts';
import { attemptWithin } from './within.ts';

/** The record store over one handle. */
export class SqliteRecords<Db extends SqliteLike> implements RecordStore<Db> {
  readonly name = 'sqlite';
  readonly admin: RecordAdmin;
  private readonly connection: SqliteConnection;
  private readonly patience: Patience;

  constructor(connection: SqliteConnection, patience: Patience, admin: RecordAdmin) {
    this.admin = admin;
    this.connection = connection;
    this.patience = patience;
  }

  get capabilities(): RecordCapabilities {
    const { isFile } = this.connection;
    return { atomicWithEffect: true, durable: isFile, shared: isFile };
  }

  async read(id: RecordId): Promise<StoredRecord | undefined> {
    return await this.alone(async () => {
      const { runtime, limitMs } = this.patience;
      const look = (): sql.Looked => lookAt(this.connection, id);
      return (await this.connection.untilFree(runtime, limitMs, look)).live;
    });
  }

  async attempt(claim: Claim, work: Work<Db>): Promise<Attempt> {
    const { connection, patience } = this;
    return await connection.turn(async (): Promise<Attempt> => {
      const seen = await this.open(claim.id);
      if (seen.live !== undefined) return { kind: 'found', record: seen.live };
      const digest = recordIdDigest(claim.id);
      let result: WorkResult;
      connection.running.add(digest);
      try {
        result = await work(connection.db as Db);
      } catch (error) {
        rollBack(connection);
        if (isConflict(error)) return { kind: 'conflict', cause: error };
        throw sqliteError(error) ?? error;
      } finally {
        connection.running.delete(digest);
      }
      return await commitWith(connection, patience, claim, seen.nowMs, result);
    });
  }

  async within(tx: Db, claim: Claim, work: Work<Db>): Promise<Attempt> {
    if (isSqlSession(tx) && !(tx instanceof SqliteConnection)) {
      return await attemptWithin({ tx, session: tx, running: runningIn(tx) }, claim, work);
    }
    const connection = tx instanceof SqliteConnection ? tx : connectionOf(tx);
    if (inTransaction(connection.db) === false) {
      throw new TurngateError('TRANSACTION_REQUIRED', 'within() needs an open transaction');
    }
    const { running } = connection;
    return await attemptWithin({ tx, session: connection, running }, claim, work);
  }

  async probe(claim: Claim): Promise<Exclude<Attempt, { kind: 'ran' }> | { kind: 'free' }> {
    return await this.connection.turn(async () => {
      const { live } = await this.open(claim.id);
      if (live !== undefined) return { kind: 'found', record: live };
      rollBack(this.connection);
      return { kind: 'free' };
    });
  }

  async purge({ batchRows, batches }: { batchRows: number; batches: number }): Promise<number> {
    const { connection } = this;
    const { runtime, limitMs } = this.patience;
    const batch = (): number => connection.querySync(sql.purge, [batchRows]).affectedRows;
    let purged = 0;
    for (let i = 0; i < batches; i++) {
      const rows = await this.alone(() => connection.untilFree(runtime, limitMs, batch));
      purged += rows;
      if (rows < batchRows) break;
    }
    return purged;
  }

  /** BEGIN IMMEDIATE and a look; leaves no transaction open when there is a record. */
  private async open(id: RecordId): Promise<sql.Looked> {
    try {
      await begin(this.connection, this.patience);
    } catch (error) {
      throw ourStoreError(error); // A transaction that is open on the handle is somebody else's.
    }
    try {
      const looked = lookAt(this.connection, id);
      if (looked.live !== undefined) rollBack(this.connection);
      else this.connection.querySync(sql.dropExpired, [recordIdDigest(id)]);
      return looked;
    } catch (error) {
      rollBack(this.connection);
      throw ourStoreError(error);
    }
  }

  private async alone<T>(body: () => Promise<T>): Promise<T> {
    try {
      return await this.connection.turn(body);
    } catch (error) {
      throw ourStoreError(error);
    }
  }
}

function lookAt(connection: SqliteConnection, id: RecordId): sql.Looked {
  const [row] = connection.querySync(sql.look, [recordIdDigest(id)]).rows;
  return sql.lookedOf(row ?? {});
}

/** Work in progress in sessions that are not ours, by the session. */
const foreign = new WeakMap<object, Set<string>>();

function runningIn(session: object): Set<string> {
  const known = foreign.get(session) ?? new Set<string>();
  foreign.set(session, known);
  return known;
}

/** A refusal is stored without the effects that led to it. */
async function commitWith(
  connection: SqliteConnection,
  patience: Patience,
  claim: Claim,
  nowMs: number,
  result: WorkResult,
): Promise<Attempt> {
  const values = sql.insertValues(claim, nowMs, result);
  const last = (): void => void connection.querySync(sql.insert, values);
  try {
    await commit(connection, patience, { undo: result.state === 'refused', last });
  } catch (error) {
    const open = inTransaction(connection.db) !== false;
    rollBack(connection);
    if (isConflict(error)) return { kind: 'conflict', cause: error };
    // An input/output error inside COMMIT: SQLite has settled it one way or the other.
    if (!open && sqliteCode(error)?.startsWith('SQLITE_IOERR')) throw new CommitUnknown(error);
    throw sqliteError(error) ?? error;
  }
  return { kind: 'ran', record: sql.recordFrom(claim, nowMs, result) };
}
