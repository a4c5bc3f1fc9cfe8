/** Every statement of the SQLite record store. Times are the host's clock as SQLite reads it. */
import type { Claim, StoredRecord, WorkResult } from '../../contract/record-store.ts';
import type { SqlValue } from '../../contract/sql-session.ts';
import { recordIdDigest } from '../../core/record-id.ts';
import { sqlNowMs } from '../../core/sql-text.ts';

const nowMs = sqlNowMs.sqlite;

/** The write lock at once: a transaction that reads first may find its snapshot outdated. */
export const begin = 'BEGIN IMMEDIATE';
export const commit = 'COMMIT';
export const rollback = 'ROLLBACK';

export const mark = (name: string): string => `SAVEPOINT ${name}`;
export const keep = (name: string): string => `RELEASE ${name}`;
export const undo = (name: string): string => `ROLLBACK TO ${name}`;

/** $1 id. One row always: the server's time, and the record if there is one. */
export const look = `SELECT ${nowMs} AS now_ms, r.state, r.fingerprint, r.owner, r.result,
  r.first_processed_ms, r.expires_ms
  FROM (SELECT 1) LEFT JOIN turngate_record AS r ON r.id = $1`;

/** $1 id. An expired record makes room for the new one; takes the write lock in any case. */
export const dropExpired = `DELETE FROM turngate_record WHERE id = $1 AND expires_ms <= ${nowMs}`;

/** A plain INSERT: under the write lock a duplicate cannot be, so one is a broken assumption. */
export const insert = `INSERT INTO turngate_record (id, operation, scope, record_key, state,
  fingerprint, owner, result, first_processed_ms, expires_ms)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`;

/** $1 rows. */
export const purge = `DELETE FROM turngate_record WHERE id IN (SELECT id FROM turngate_record
  WHERE expires_ms <= ${nowMs} ORDER BY expires_ms LIMIT $1)`;

export function insertValues(claim: Claim, nowMs: number, result: WorkResult): SqlValue[] {
  const { id, fingerprint, owner, retentionMs } = claim;
  const identity = [recordIdDigest(id), id.operation, id.scope, id.key];
  const outcome = [result.state, fingerprint, owner, result.result];
  return [...identity, ...outcome, nowMs, nowMs + retentionMs];
}

/** What a look found. */
export interface Looked {
  readonly nowMs: number;
  /** The record, if it is not expired. */
  readonly live: StoredRecord | undefined;
}

export function lookedOf(row: Readonly<Record<string, unknown>>): Looked {
  const atMs = Number(row['now_ms']);
  const expiresAtMs = Number(row['expires_ms']);
  if (row['state'] === null || expiresAtMs <= atMs) return { nowMs: atMs, live: undefined };
  const live = {
    state: String(row['state']) as StoredRecord['state'],
    fingerprint: String(row['fingerprint']),
    owner: String(row['owner']),
    result: String(row['result']),
    firstProcessedAtMs: Number(row['first_processed_ms']),
    expiresAtMs,
  };
  return { nowMs: atMs, live };
}

/** The record as it was just written. */
export function recordFrom(claim: Claim, nowMs: number, result: WorkResult): StoredRecord {
  const { fingerprint, owner, retentionMs } = claim;
  const { state, result: encoded } = result;
  const times = { firstProcessedAtMs: nowMs, expiresAtMs: nowMs + retentionMs };
  return { state, fingerprint, owner, result: encoded, ...times };
}
