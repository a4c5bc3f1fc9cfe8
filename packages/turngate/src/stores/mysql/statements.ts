/**
 * Every statement the MySQL record store sends: MySQL 8.0 and MariaDB 10.6 alike. Times are the
 * server's, in UTC, as whole numbers, so that no time zone setting moves them.
 */
import { hash } from 'node:crypto';
import type { Claim, SingleWrite, StoredRecord, WorkResult } from '../../contract/record-store.ts';
import { encodeResult } from '../../core/codec.ts';
import { type RecordId, recordIdText } from '../../core/record-id.ts';
import { rewritePlaces } from '../../core/sql-text.ts';
import type { Link } from './driver.ts';
import { bytes, hexBytes, integer, plainLiteral, plainText, text } from './literal.ts';
import { userLock } from './user-lock.ts';

const nowMs = `(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)`;

/** The state of a record whose work, inside a caller's transaction, has not ended. */
export const running = 'running';

/** The names under which one claim's identity and payload are known to the server. */
export interface ClaimNames {
  /** SHA-256 of the identity, hexadecimal. */
  readonly id: string;
  /** The user lock of the identity and that of (identity, payload), as SQL. */
  readonly identity: string;
  readonly payload: string;
}

export function namesOf(claim: Claim, link: Pick<Link, 'database'>): ClaimNames {
  const text = recordIdText(claim.id);
  const id = hash('sha256', text, 'hex');
  const payload = hash('sha256', `${text}\n${claim.fingerprint}`, 'hex');
  return {
    id,
    identity: userLock(link, 'i', id),
    payload: userLock(link, 'p', payload),
  };
}

export const savepoint = 'turngate';
/** Off, so that nothing autocommits after the server has rolled the transaction back (deadlock). */
export const open: readonly string[] = ['SET autocommit = 0', `SAVEPOINT ${savepoint}`];
/** Switching it on commits. */
export const commit = 'SET autocommit = 1';
export const rollback: readonly string[] = ['ROLLBACK', 'SET autocommit = 1'];
/** Shows rows of open transactions too. For the next statement only. */
export const dirty = 'SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED';
/** No gap locks on the way. For the next transaction only. */
export const readCommitted = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED';

export const keep = (name: string): string => `RELEASE SAVEPOINT ${name}`;
export const undo = (name: string): string => `ROLLBACK TO SAVEPOINT ${name}`;
export const mark = (name: string): string => `SAVEPOINT ${name}`;

/**
 * The order is that of `recordOf`. Every column of ours has a fixed name: mysql2 compiles a row parser
 * for each set of names it meets, and an expression with a key in it would be a new one every time.
 */
const columns = `r.state, r.fingerprint, r.owner, r.result, r.first_processed_ms, r.expires_ms`;

/**
 * First the payload's lock, then the identity's: whoever has the identity has its payload too, so a
 * stranger who gets the payload but not the identity has met another payload. Then the record: the
 * join reads it by what the locks answered, so never before. Each expression more is felt on every
 * first call. Rows (how many of the two locks, server time, the record).
 */
export function claim({ id, identity, payload }: ClaimNames): string {
  return `SELECT g.taken, ${nowMs} AS now_ms, ${columns}
  FROM (SELECT CASE WHEN GET_LOCK(${payload}, 0) = 1
    THEN 1 + COALESCE(GET_LOCK(${identity}, 0), 0) ELSE 0 END AS taken LIMIT 1) AS g
  LEFT JOIN turngate_record AS r ON r.id = IF(g.taken < 0, NULL, ${hexBytes(id)})`;
}

/** Who has the identity's lock. */
export function holder({ identity }: ClaimNames): string {
  return `SELECT IS_USED_LOCK(${identity}) AS holder`;
}

/** The identity first: see `claim`. */
export function release({ identity, payload }: ClaimNames, taken: number): string {
  return taken === 2
    ? `DO RELEASE_LOCK(${identity}), RELEASE_LOCK(${payload})`
    : `DO RELEASE_LOCK(${payload})`;
}

export function read(id: RecordId): string {
  return select(hash('sha256', recordIdText(id), 'hex'));
}

export function select(id: string): string {
  return `SELECT ${nowMs} AS now_ms, ${columns} FROM turngate_record AS r WHERE r.id = ${hexBytes(id)}`;
}

/** The newest committed record, however old the transaction's snapshot. For rows that exist. */
export function selectLatest(id: string): string {
  return `${select(id)} LOCK IN SHARE MODE`;
}

/** An expired record makes room for the new one, in the new one's transaction. */
export function dropOld(id: string, owner: string): string {
  return `DELETE FROM turngate_record WHERE id = ${hexBytes(id)} AND owner = ${bytes(owner)}`;
}

const recordColumns = `id, operation, scope, record_key, state, fingerprint, owner, result,
  first_processed_ms, expires_ms`;

/**
 * A plain INSERT, which fails on a duplicate. Never INSERT IGNORE, which hides more than duplicates,
 * nor ON DUPLICATE KEY UPDATE, whose row count depends on the client's flags.
 */
export function insert(
  claim: Claim,
  id: string,
  nowMs: number,
  result: WorkResult | { readonly state: typeof running; readonly result: '' },
): string {
  const { operation, scope, key } = claim.id;
  const texts = [operation, scope, key, result.state, claim.fingerprint, claim.owner];
  const times = [nowMs, nowMs + claim.retentionMs].map(integer);
  return `INSERT INTO turngate_record (${recordColumns})
  VALUES (${[hexBytes(id), ...[...texts, result.result].map(bytes), ...times].join(', ')})`;
}

/** Makes the record of work inside a caller's transaction final. */
export function finish(id: string, owner: string, { state, result }: WorkResult): string {
  return `UPDATE turngate_record SET state = ${bytes(state)}, result = ${bytes(result)}
  WHERE id = ${hexBytes(id)} AND owner = ${bytes(owner)}`;
}

/** SHA-256 of the identity, hexadecimal. */
export function idOf(id: RecordId): string {
  return hash('sha256', recordIdText(id), 'hex');
}

export const oneRow = encodeResult([{ affectedRows: 1 }]);

/** The write with its values in it. */
function rendered({ statement, values }: SingleWrite, literal: (text: string) => string): string {
  return rewritePlaces(statement, (index) => {
    const value = values[index - 1];
    return value == null ? 'NULL' : literal(value);
  });
}

/**
 * Claim, write and result as statements of one trip, each planned as it stands, where the server can end
 * the transaction by the count of the write: MariaDB. The time of the record comes back as the insert id:
 * a row for it would cost more than the claim. A failure skips the rest and leaves the transaction open.
 * Undefined for a write that is not surely one statement which
 * answers with a count, and for values that are no plain text in every connection.
 */
export function singleWriteSteps(claim: Claim, write: SingleWrite): string[] | undefined {
  const isPlain = write.values.every((value) => value === null || plainText.test(value));
  if (!isPlain || /;|\breturning\b/i.test(write.statement)) return undefined;
  const { operation, scope, key } = claim.id;
  const texts = [operation, scope, key, 'done', claim.fingerprint, claim.owner, oneRow].map(bytes);
  const times = `LAST_INSERT_ID(${nowMs}), ${nowMs} + ${integer(claim.retentionMs)}`;
  return [
    'START TRANSACTION',
    `INSERT INTO turngate_record (${recordColumns})
     VALUES (${hexBytes(idOf(claim.id))}, ${texts.join(', ')}, ${times})`,
    rendered(write, plainLiteral),
    "EXECUTE IMMEDIATE IF(ROW_COUNT() = 1, 'COMMIT', 'ROLLBACK')",
  ];
}

/** The same in one call, for every server; see the migration. */
export function singleWrite(claim: Claim, write: SingleWrite): string {
  const { operation, scope, key } = claim.id;
  const written = rendered(write, text);
  const texts = [operation, scope, key, claim.fingerprint, claim.owner].map(bytes);
  const own = [hexBytes(idOf(claim.id)), ...texts, integer(claim.retentionMs), bytes(oneRow)];
  return `CALL turngate_single_write(${own.join(', ')}, CONVERT(${bytes(written)} USING utf8mb4))`;
}

/** Locks rows that nobody else holds; at READ COMMITTED, where the range leaves no gap locks. */
export function selectExpired(rows: number): string {
  return `SELECT HEX(id) AS hex FROM turngate_record WHERE expires_ms <= ${nowMs}
  ORDER BY expires_ms LIMIT ${integer(rows)} FOR UPDATE SKIP LOCKED`;
}

export function deleteAll(ids: readonly string[]): string {
  return `DELETE FROM turngate_record WHERE id IN (${ids.map(hexBytes).join(', ')})`;
}

/** What a row tells. */
export interface Found {
  readonly record: StoredRecord;
  /** Is it finished and not expired? */
  readonly live: boolean;
  /** Is it work in a caller's transaction that has not ended? */
  readonly running: boolean;
}

/** Rows (server time, the record); the answer to `select` and the end of that to `claim`. */
export function foundOf(row: readonly (string | null)[]): Found {
  const [nowMs, state, fingerprint, owner, result, firstMs, expiresMs] = row as string[];
  const record = {
    state: state as StoredRecord['state'],
    fingerprint: fingerprint as string,
    owner: owner as string,
    result: result as string,
    firstProcessedAtMs: Number(firstMs),
    expiresAtMs: Number(expiresMs),
  };
  const isRunning = state === running;
  return { record, running: isRunning, live: !isRunning && Number(nowMs) < record.expiresAtMs };
}
