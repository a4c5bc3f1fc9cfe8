/**
 * The statements of locks. Times are the server's microseconds in UTC, taken when a statement starts: one
 * that had to wait for the row gives a shorter lease, never a longer one.
 */
import { hash } from 'node:crypto';
import type { LockAttempt } from '../../contract/lock-store.ts';
import { bytes, hexBytes, integer } from './literal.ts';

const nowUs = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`;

/** The row of a name. Other kinds of lock have rows of their own; no name contains a NUL. */
export function lockId(name: string, kind = ''): string {
  return hash('sha256', kind === '' ? name : `${kind}\u0000${name}`, 'hex');
}

/** Rows (owner, fence, remaining microseconds). Fixed column names: see statements.ts. */
const state = `owner, fence, expires_us - ${nowUs} AS left_us`;

/**
 * Grants when free or expired, leaves the row alone otherwise. The fence is the larger of the last one
 * plus one and the server's microseconds, so it grows even if the newest rows were lost in a failover.
 * Each column reads only itself and `expires_us`, which comes last, so the order of assignments does
 * not matter. MariaDB answers with the row; MySQL needs `show` for that.
 *
 * @param always the caller holds the name by other means: whatever the row says is old
 */
export function acquire(id: string, attempt: LockAttempt, always = false): string {
  const free = always ? 'TRUE' : `expires_us <= ${nowUs}`;
  const next = `GREATEST(fence_last + 1, ${nowUs})`;
  const more = integer((attempt.fences ?? 1) - 1);
  const owner = bytes(attempt.owner);
  const expires = `${nowUs} + ${integer(attempt.leaseMs)} * 1000`;
  return `INSERT INTO turngate_lock (id, name, owner, fence, fence_last, expires_us)
  VALUES (${hexBytes(id)}, ${bytes(attempt.name)}, ${owner}, ${nowUs}, ${nowUs} + ${more}, ${expires})
  ON DUPLICATE KEY UPDATE
    fence = IF(${free}, ${next}, fence),
    fence_last = IF(${free}, ${next} + ${more}, fence_last),
    owner = IF(${free}, ${owner}, owner),
    expires_us = IF(${free}, ${expires}, expires_us)
  /*M!100500 RETURNING ${state} */`;
}

/** Hands the lock on while it is held. */
export function pass(id: string, owner: string, next: LockAttempt): string {
  const fence = `GREATEST(fence_last + 1, ${nowUs})`;
  return `UPDATE turngate_lock SET fence = ${fence},
    fence_last = ${fence} + ${integer((next.fences ?? 1) - 1)}, owner = ${bytes(next.owner)},
    expires_us = ${nowUs} + ${integer(next.leaseMs)} * 1000
  WHERE id = ${hexBytes(id)} AND owner = ${bytes(owner)} AND expires_us > ${nowUs}`;
}

export function show(id: string): string {
  return `SELECT ${state} FROM turngate_lock WHERE id = ${hexBytes(id)}`;
}

/** An owner is unique per attempt, so it needs no pairing with its name. */
export function renew(ids: readonly string[], attempts: readonly LockAttempt[]): string {
  const leases = attempts.map(({ owner, leaseMs }) => {
    return `WHEN ${bytes(owner)} THEN ${integer(leaseMs)}`;
  });
  const owners = attempts.map(({ owner }) => bytes(owner)).join(', ');
  return `UPDATE turngate_lock
  SET expires_us = ${nowUs} + (CASE owner ${leases.join(' ')} END) * 1000
  WHERE id IN (${ids.map(hexBytes).join(', ')}) AND owner IN (${owners}) AND expires_us > ${nowUs}`;
}

/** Rows (id, owner, is it live). */
export function showAll(ids: readonly string[]): string {
  return `SELECT LOWER(HEX(id)) AS hex, owner, expires_us > ${nowUs} AS live FROM turngate_lock
  WHERE id IN (${ids.map(hexBytes).join(', ')})`;
}

/** Frees it if it is still this owner's. It always changes the row it finds: the count decides. */
export function release(id: string, owner: string): string {
  return `UPDATE turngate_lock SET owner = '', expires_us = 0
  WHERE id = ${hexBytes(id)} AND owner = ${bytes(owner)} AND expires_us > ${nowUs}`;
}

/** Frees it whoever has it. */
export function forceRelease(id: string): string {
  return `UPDATE turngate_lock SET owner = '', expires_us = 0
  WHERE id = ${hexBytes(id)} AND expires_us > ${nowUs}`;
}
