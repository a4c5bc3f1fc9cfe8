/** The few places where SQL dialects differ for fences. */
import type { SqlDialect } from '../contract/sql-session.ts';
import { optionError } from '../core/option.ts';

/** Quotes a name, so that it can be neither SQL nor a keyword. */
export function quoteName(option: string, name: unknown, dialect: SqlDialect): string {
  if (typeof name !== 'string' || !/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)) {
    throw optionError(option, 'a name of letters, digits and _', name);
  }
  return dialect === 'mysql' ? `\`${name}\`` : `"${name}"`;
}

/** Quotes `table` or `schema.table`. */
export function quoteTable(table: unknown, dialect: SqlDialect): string {
  if (typeof table !== 'string') throw optionError('table', 'a table name', table);
  const parts = table.split('.');
  return parts.map((part) => quoteName('table', part, dialect)).join('.');
}

/**
 * A bound fence as the column's type. Fences travel as text: a driver would turn them into doubles,
 * and MySQL compares a number with a text as doubles, which are too short for them.
 */
export function boundFence(place: number, dialect: SqlDialect): string {
  const types = { postgres: 'bigint', mysql: 'SIGNED', sqlite: 'INTEGER' };
  return `CAST($${place} AS ${types[dialect]})`;
}

/** A fence column as text, for the same reason. */
export function fenceText(column: string, dialect: SqlDialect): string {
  return `CAST(${column} AS ${dialect === 'mysql' ? 'CHAR' : 'TEXT'})`;
}

/** Locks the rows read until the transaction ends. SQLite has one writer and no such clause. */
export function forUpdate(dialect: SqlDialect): string {
  return dialect === 'sqlite' ? '' : ' FOR UPDATE';
}
