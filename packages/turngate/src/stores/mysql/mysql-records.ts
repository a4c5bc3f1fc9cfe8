/**
 * Records in MySQL and MariaDB. The claim is a pair of user locks on the transaction's connection, and
 * the only row written is the finished one, sent with COMMIT: a first call costs one insert, and a
 * crash at any line leaves nothing to clean up. The primary key decides even if the locks did not.
 */
import {
  type Attempt,
  type Claim,
  CommitUnknown,
  type RecordAdmin,
  type RecordStore,
  type SingleWrite,
  type SingleWriteAttempt,
  type StoredRecord,
  type Work,
  type WorkResult,
} from '../../contract/record-store.ts';
import type { RecordId } from '../../core/record-id.ts';
import { look, type Seen, takenOf } from './claiming.ts';
import type { MysqlDriver, OwnLink, Row } from './driver.ts';
import {
  endedError,
  isConflict,
  isDuplicate,
  isLinkLost,
  isSavepointGone,
  mysqlError,
  ourStoreError,
  workError,
} from './mysql-error.ts';
import * as sql from './statements.ts';
import { attemptWithin } from './within.ts';

interface Opened<Tx> {
  readonly link: OwnLink<Tx>;
  readonly names: sql.ClaimNames;
  readonly free: Extract<Seen, { kind: 'free' }>;
}

/** The record store over a MySQL driver. */
export class MysqlRecords<Tx> implements RecordStore<Tx> {
  readonly name = 'mysql';
  readonly capabilities = { atomicWithEffect: true, durable: true, shared: true } as const;
  readonly admin: RecordAdmin;
  private readonly driver: MysqlDriver<Tx>;

  constructor(driver: MysqlDriver<Tx>, admin: RecordAdmin) {
    this.driver = driver;
    this.admin = admin;
  }

  async read(id: RecordId): Promise<StoredRecord | undefined> {
    return await this.onLink(async (link) => {
      const [answer] = await link.batch([sql.read(id)]);
      const row = answer?.rows[0];
      const found = row && sql.foundOf(row);
      return found?.live ? found.record : undefined;
    });
  }

  async attempt(claim: Claim, work: Work<Tx>): Promise<Attempt> {
    const opened = await this.open(claim);
    if (!('link' in opened)) return opened;
    const { link, names } = opened;
    let result: WorkResult;
    try {
      result = await work(link.tx);
    } catch (error) {
      const alive = await endWithout(link, names);
      if (isConflict(error)) return { kind: 'conflict', cause: error };
      throw workError(error, alive);
    }
    return await commitWith(opened, claim, result);
  }

  async within(tx: Tx, claim: Claim, work: Work<Tx>): Promise<Attempt> {
    return await attemptWithin(tx, this.driver.adopt(tx), claim, work);
  }

  async probe(claim: Claim): Promise<Exclude<Attempt, { kind: 'ran' }> | { kind: 'free' }> {
    const opened = await this.open(claim);
    if (!('link' in opened)) return opened;
    await endWithout(opened.link, opened.names);
    return { kind: 'free' };
  }

  async singleWrite(claim: Claim, write: SingleWrite): Promise<SingleWriteAttempt> {
    let link: OwnLink<Tx> | undefined;
    try {
      link = await this.driver.connect();
      const steps = link.oneTrip && link.mariadb ? sql.singleWriteSteps(claim, write) : undefined;
      const attempt =
        steps === undefined
          ? await writeInProcedure(link, claim, write)
          : await writeAtOnce(link, claim, steps);
      link.release();
      if (attempt !== 'expired') return attempt;
      return { kind: 'conflict', cause: new Error('the record had expired') };
    } catch (error) {
      if (isConflict(error)) {
        link?.release();
        return { kind: 'conflict', cause: error };
      }
      if (isLinkLost(error)) {
        link?.destroy();
        throw new CommitUnknown(error);
      }
      link?.release();
      throw mysqlError(error) ?? error;
    }
  }

  async purge({ batchRows, batches }: { batchRows: number; batches: number }): Promise<number> {
    let purged = 0;
    for (let i = 0; i < batches; i++) {
      const rows = await this.onLink((link) => purgeBatch(link, batchRows));
      purged += rows;
      if (rows < batchRows) break;
    }
    return purged;
  }

  /** Claims and opens the transaction; leaves at once, connection given back, when it is not ours. */
  private async open(claim: Claim): Promise<Opened<Tx> | Exclude<Seen, { kind: 'free' }>> {
    return await this.onLink(
      async (link): Promise<Opened<Tx> | Exclude<Seen, { kind: 'free' }>> => {
        const names = sql.namesOf(claim, link);
        const ahead = link.oneTrip ? sql.open : [];
        const answers = await link.batch([sql.dirty, sql.claim(names), ...ahead]);
        const taken = takenOf(answers[1] as (typeof answers)[number]);
        const seen = await look(link, claim, names, taken);
        if (seen.kind === 'free') {
          if (!link.oneTrip) await link.batch(sql.open);
          return { link, names, free: seen };
        }
        const free = taken.taken > 0 ? [sql.release(names, taken.taken)] : [];
        const close = link.oneTrip ? sql.rollback : [];
        if (free.length + close.length > 0) await link.batch([...free, ...close]);
        return seen;
      },
      (opened) => 'link' in opened,
    );
  }

  /** Runs our own statements on a connection; a failure throws the connection away with its locks. */
  private async onLink<T>(
    body: (link: OwnLink<Tx>) => Promise<T>,
    keeps: (value: T) => boolean = () => false,
  ): Promise<T> {
    let link: OwnLink<Tx> | undefined;
    try {
      link = await this.driver.connect();
      const value = await body(link);
      if (!keeps(value)) link.release();
      return value;
    } catch (error) {
      link?.destroy();
      throw ourStoreError(error);
    }
  }
}

/** A refusal is stored without the effects that led to it. */
async function commitWith<Tx>(
  { link, names, free }: Opened<Tx>,
  claim: Claim,
  result: WorkResult,
): Promise<Attempt> {
  const { nowMs, old } = free;
  const steps = [
    // Both fail when the transaction is not the one we opened: nothing is committed then.
    result.state === 'refused' ? sql.undo(sql.savepoint) : sql.keep(sql.savepoint),
    ...(old === undefined ? [] : [sql.dropOld(names.id, old)]),
    sql.insert(claim, names.id, nowMs, result),
    sql.commit,
  ];
  const last = sql.release(names, 2);
  try {
    await link.batch(link.oneTrip ? [...steps, last] : steps);
  } catch (error) {
    const alive = await endWithout(link, names);
    if (isLinkLost(error)) throw new CommitUnknown(error);
    if (isSavepointGone(error)) throw endedError(error);
    // The server answered, so it answered "no": the transaction is rolled back.
    if (isConflict(error) || isDuplicate(error)) return { kind: 'conflict', cause: error };
    throw alive ? (mysqlError(error) ?? error) : ourStoreError(error);
  }
  if (link.oneTrip) link.release();
  else giveBack(link, last); // The caller need not wait for it.
  return { kind: 'ran', record: recordFrom(claim, result, nowMs) };
}

/** Rolls back and frees the locks; a connection that does not answer is thrown away. */
async function endWithout(link: OwnLink<unknown>, names: sql.ClaimNames): Promise<boolean> {
  try {
    await link.batch([...sql.rollback, sql.release(names, 2)]);
    link.release();
    return true;
  } catch {
    link.destroy();
    return false;
  }
}

function giveBack(link: OwnLink<unknown>, last: string): void {
  link.batch([last]).then(
    () => link.release(),
    () => link.destroy(),
  );
}

async function writeInProcedure(
  link: OwnLink<unknown>,
  claim: Claim,
  write: SingleWrite,
): Promise<SingleWriteAttempt | 'expired'> {
  const [answer] = await link.batch([sql.singleWrite(claim, write)]);
  const [outcome, ...row] = (answer?.rows[0] ?? []) as Row;
  return outcome === 'nothing' ? { kind: 'nothing' } : await known(link, claim, row);
}

async function writeAtOnce(
  link: OwnLink<unknown>,
  claim: Claim,
  steps: readonly string[],
): Promise<SingleWriteAttempt | 'expired'> {
  try {
    const [, recorded, written] = await link.batch(steps);
    if (written?.affectedRows !== 1) return { kind: 'nothing' };
    const nowMs = recorded?.insertId as number;
    return { kind: 'ran', record: recordFrom(claim, { state: 'done', result: sql.oneRow }, nowMs) };
  } catch (error) {
    if (isLinkLost(error)) throw error;
    const [, answer] = await link.batch(['ROLLBACK', sql.read(claim.id)]);
    const [row] = answer?.rows ?? [];
    // Without a record the duplicate was one of the write's own table.
    if (!isDuplicate(error) || row === undefined) throw error;
    return await known(link, claim, row);
  }
}

/** An expired record makes room for the next attempt. */
async function known(
  link: OwnLink<unknown>,
  claim: Claim,
  row: Row,
): Promise<SingleWriteAttempt | 'expired'> {
  const { record, live } = sql.foundOf(row);
  if (live) return { kind: record.owner === claim.owner ? 'ran' : 'found', record };
  if (record.owner != null) await link.batch([sql.dropOld(sql.idOf(claim.id), record.owner)]);
  return 'expired';
}

function recordFrom(claim: Claim, { state, result }: WorkResult, nowMs: number): StoredRecord {
  const { fingerprint, owner, retentionMs } = claim;
  const expiresAtMs = nowMs + retentionMs;
  return { state, fingerprint, owner, result, firstProcessedAtMs: nowMs, expiresAtMs };
}

async function purgeBatch(link: OwnLink<unknown>, batchRows: number): Promise<number> {
  const begin = [sql.readCommitted, 'START TRANSACTION', sql.selectExpired(batchRows)];
  const answers = await link.batch(begin);
  const ids = (answers[2]?.rows ?? []).map(([id]) => id as string);
  await link.batch(ids.length === 0 ? ['COMMIT'] : [sql.deleteAll(ids), 'COMMIT']);
  return ids.length;
}
