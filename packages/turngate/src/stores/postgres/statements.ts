/** Every statement the PostgreSQL stores send. Values travel as text and are cast here. */

import { sqlNowMs } from '../../core/sql-text.ts';

/** A statement that can be prepared once per connection under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** A statement with its values. */
export interface Step {
  readonly statement: Statement;
  readonly values: readonly (string | null)[];
}

function statement(name: string, text: string): Statement {
  return { name: `turngate_${name}_1`, text };
}

/** A stored time in whole milliseconds, cut off everywhere alike. */
export function millis(time: string): string {
  return `trunc(extract(epoch FROM ${time}) * 1000)::text`;
}

/**
 * The order is that of `recordOf` in postgres-records. Everything leaves as text, and under a name of
 * its own: some clients give rows as objects.
 */
const columns = `state, fingerprint, owner, result,
  ${millis('first_processed_at')} AS first_ms, ${millis('expires_at')} AS expires_ms,
  (expires_at > clock_timestamp())::text AS live`;

export const begin: Statement = statement('begin', 'BEGIN ISOLATION LEVEL READ COMMITTED');
export const commit: Statement = statement('commit', 'COMMIT');
export const rollback: Statement = statement('rollback', 'ROLLBACK');
export const savepoint: Statement = statement('savepoint', 'SAVEPOINT turngate');
export const rollbackToSavepoint: Statement = statement('undo', 'ROLLBACK TO SAVEPOINT turngate');
export const releaseSavepoint: Statement = statement('keep', 'RELEASE SAVEPOINT turngate');

/**
 * $1 lock of (identity, payload), taken shared by everybody who works or asks with this payload;
 * $2 lock of the identity, taken exclusively by the one who works. In this order, so that whoever
 * finds $2 taken can tell by $1 whether the worker has the same payload (see same_payload).
 */
export const claim: Statement = statement(
  'claim',
  `SELECT pg_try_advisory_xact_lock_shared($1::bigint)::text AS payload,
  pg_try_advisory_xact_lock($2::bigint)::text AS identity,
  (${sqlNowMs.postgres})::text AS now_ms`,
);

/**
 * Asked by somebody who did not get the identity: once we have $1 exclusively, nobody else holds it
 * or can take it, so if the identity is still taken then, its worker has another payload.
 */
export const samePayload: Statement = statement(
  'payload',
  `SELECT (CASE WHEN pg_try_advisory_xact_lock($1::bigint)
  THEN pg_try_advisory_xact_lock($2::bigint) ELSE true END)::text AS same`,
);

export const read: Statement = statement(
  'read',
  `SELECT ${columns} FROM turngate_record
  WHERE operation = $1 AND scope = $2 AND key = $3`,
);

/** An expired record makes room for the new one, in the new one's transaction. */
export const dropExpired: Statement = statement(
  'drop',
  `DELETE FROM turngate_record
  WHERE operation = $1 AND scope = $2 AND key = $3 AND expires_at <= clock_timestamp()`,
);

/**
 * A plain INSERT, which fails on a live duplicate and takes the whole transaction with it: under the
 * claim's lock a duplicate cannot be, so one is a broken assumption, not an answer.
 */
export const insert: Statement = statement(
  'insert',
  `INSERT INTO turngate_record
  (operation, scope, key, state, fingerprint, owner, result, first_processed_at, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7,
  to_timestamp($8::bigint / 1000.0), to_timestamp(($8::bigint + $9::bigint) / 1000.0))`,
);

/**
 * One batch from $2 on, in the order of the table's blocks: a pass reads each block once, where a search
 * from the start would read all that earlier batches have emptied again. The predicate is repeated on
 * the locked row, so a record renewed meanwhile is not deleted. The table may be partitioned, where one
 * ctid means a row in each part. Row (deleted, seen, last place).
 */
export const purge: Statement = statement(
  'purge',
  `WITH found AS MATERIALIZED (
    SELECT tableoid AS part, ctid AS place FROM turngate_record
    WHERE ctid > $2::tid AND expires_at <= statement_timestamp()
    LIMIT $1::int FOR UPDATE SKIP LOCKED),
  gone AS (
    DELETE FROM turngate_record WHERE ctid = ANY (ARRAY(SELECT place FROM found))
    AND (tableoid, ctid) IN (SELECT part, place FROM found)
    AND expires_at <= clock_timestamp() RETURNING 1)
  SELECT (SELECT count(*) FROM gone)::text, (SELECT count(*) FROM found)::text,
    (SELECT place FROM found ORDER BY place DESC LIMIT 1)::text`,
);

export const singleWrite: Statement = statement(
  'single_write',
  'SELECT * FROM turngate_single_write($1, $2, $3, $4, $5, $6::bigint, $7, $8::text[])',
);
