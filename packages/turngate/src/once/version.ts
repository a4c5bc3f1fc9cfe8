/** Optimistic versions: a change is written only where nobody has changed the row since it was read. */
import type { SqlSession, SqlValue } from '../contract/sql-session.ts';
import { knownOptions, optionError } from '../core/option.ts';

/** A change of one row that was read at a version. Names are yours, never from a request. */
export interface VersionedChange {
  readonly table: string;
  /** Columns that identify the row, and their values. */
  readonly id: Readonly<Record<string, SqlValue>>;
  /** The version that was read. Up to 2^53 - 1. */
  readonly version: number;
  /** Columns and their new values. */
  readonly set: Readonly<Record<string, SqlValue>>;
  /** @default 'version' */
  readonly versionColumn?: string;
}

/** `stale`: somebody was faster; read again, decide again. `version` is what the row has now. */
export type VersionedResult =
  | { readonly kind: 'applied'; readonly version: number }
  | { readonly kind: 'stale'; readonly version: number }
  | { readonly kind: 'missing' };

/**
 * `UPDATE … SET …, version = version + 1 WHERE id = … AND version = …`, and what came of it.
 *
 * It guards a change that was decided on what was read, by whoever was slower. It does not recognise
 * a repeat: the same change sent twice is `stale` the second time, and a repeat that reads again
 * applies again. That is the work of an idempotency key.
 *
 * At REPEATABLE READ PostgreSQL answers a lost race with 40001 instead of `stale`.
 *
 * @throws OPTION_INVALID before any I/O
 */
export async function updateVersion(
  sql: SqlSession,
  change: VersionedChange,
): Promise<VersionedResult> {
  const { table, id, set, version, versionColumn = 'version' } = checked(change);
  const values: SqlValue[] = [];
  const equals = ([column, value]: [string, SqlValue]): string =>
    `${column} = $${values.push(value)}`;
  const sets = Object.entries(set).map(equals);
  const where = Object.entries(id).map(equals).join(' AND ');
  // The version changes, so every driver counts the row, whether it counts found or changed ones.
  const { affectedRows } = await sql.query(
    `UPDATE ${table} SET ${[...sets, `${versionColumn} = ${versionColumn} + 1`].join(', ')}
     WHERE ${where} AND ${versionColumn} = $${values.push(version)}`,
    values,
  );
  if (affectedRows > 1) throw optionError('id', 'columns that identify one row', id);
  if (affectedRows === 1) return { kind: 'applied', version: version + 1 };
  const ids = Object.keys(id).map((column, i) => `${column} = $${i + 1}`);
  // A locking read: at REPEATABLE READ a plain one may still show the version that was read before.
  const { rows } = await sql.query(
    `SELECT ${versionColumn} AS version_now FROM ${table} WHERE ${ids.join(' AND ')}
     ${sql.dialect === 'sqlite' ? '' : 'FOR UPDATE'}`,
    Object.values(id),
  );
  const [row] = rows;
  if (row === undefined) return { kind: 'missing' };
  return { kind: 'stale', version: Number(row['version_now']) };
}

const known = ['table', 'id', 'version', 'set', 'versionColumn'];
const name = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$/;

function checked(change: VersionedChange): VersionedChange {
  knownOptions('change', change, known);
  const { table, id, version, set, versionColumn = 'version' } = change;
  for (const text of [table, versionColumn, ...Object.keys(id), ...Object.keys(set)]) {
    if (!name.test(text)) throw optionError('table and columns', 'plain SQL names', text);
  }
  if (Object.keys(id).length === 0) throw optionError('id', 'at least one column', id);
  if (versionColumn in set) throw optionError('set', 'without the version column', versionColumn);
  if (!Number.isSafeInteger(version)) throw optionError('version', 'a safe integer', version);
  return change;
}
