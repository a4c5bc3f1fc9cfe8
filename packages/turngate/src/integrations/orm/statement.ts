/** From Turngate's statements (`$1`, any order, any number of times) to what a library takes. */
import type { SqlDialect, SqlResult, SqlValue } from '../../contract/sql-session.ts';
import { optionError } from '../../core/option.ts';
import { placed, type SqlPieces, sqlPieces } from '../../core/sql-placeholders.ts';

/** A text with placeholders in order, and its values. */
export interface Statement {
  readonly text: string;
  readonly values: unknown[];
}

/** How a library wants its texts. */
export interface Style {
  /** The placeholder of the n-th place, counted from 1. */
  readonly place: (n: number) => string;
  /** What a piece of text between placeholders must look like. */
  readonly literal?: (text: string) => string;
}

export const questionMarks: Style = { place: () => '?' };
export const dollars: Style = { place: (n) => `$${n}` };
/** `?` in the text itself is written `\?`. */
export const escapedQuestionMarks: Style = {
  place: () => '?',
  literal: (text) => text.replaceAll('?', '\\?'),
};

/** @throws OPTION_INVALID when a placeholder has no value */
export function statementOf(
  dialect: SqlDialect,
  text: string,
  values: readonly SqlValue[],
  style: Style,
): Statement {
  const { literal = (same: string) => same } = style;
  const bound: unknown[] = [];
  const pieces: (string | number)[] = sqlPieces(text, dialect).map((piece) => {
    if (typeof piece === 'string') return literal(piece);
    const value = values[piece - 1];
    // MySQL: a whole number that travels as a text would be compared as a float.
    const digits = dialect === 'mysql' ? wholeNumber(value) : undefined;
    if (digits !== undefined) return digits;
    bound.push(value === undefined ? undefined : bindable(dialect, value));
    return bound.length;
  });
  return placed(pieces as SqlPieces, bound, style.place);
}

function wholeNumber(value: SqlValue | undefined): string | undefined {
  if (typeof value === 'bigint') return value.toString();
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : undefined;
}

function bindable(dialect: SqlDialect, value: SqlValue): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (dialect === 'sqlite') {
    // better-sqlite3 binds numbers as floats, and takes neither booleans nor dates.
    if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
    if (typeof value === 'boolean') return value ? 1 : 0;
    if (value instanceof Date) return value.toISOString();
  }
  return dialect === 'postgres' && typeof value === 'bigint' ? value.toString() : value;
}

/** Does the statement answer with rows? */
export function readsRows(text: string): boolean {
  return /^\s*(select|with|values|show|explain)\b|\breturning\b/i.test(text);
}

/** What drivers answer: pg's and PGlite's object, mysql2's pair, postgres.js' array, better-sqlite3's. */
export function resultOf(answer: unknown): SqlResult {
  if (Array.isArray(answer)) {
    const [first, second] = answer as unknown[];
    // mysql2: rows or a header, then the fields.
    if (Array.isArray(first)) return rowsOf(first);
    if (isHeader(first) && answer.length <= 2) {
      return second === undefined || Array.isArray(second) || isHeader(second) || second === null
        ? { rows: [], affectedRows: first.affectedRows }
        : rowsOf(answer);
    }
    const { count } = answer as { count?: number | null };
    return { rows: answer, affectedRows: count ?? answer.length };
  }
  const { rows, rowCount, affectedRows, changes } = (answer ?? {}) as Record<string, unknown>;
  const list = Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
  const count = rowCount ?? affectedRows ?? changes ?? list.length;
  return { rows: list, affectedRows: Number(count) };
}

function rowsOf(rows: unknown[]): SqlResult {
  return { rows: rows as Record<string, unknown>[], affectedRows: rows.length };
}

function isHeader(value: unknown): value is { affectedRows: number } {
  const header = value as { affectedRows?: unknown; fieldCount?: unknown } | null | undefined;
  return typeof header?.affectedRows === 'number' && header.fieldCount !== undefined;
}

const dialects: Readonly<Record<string, SqlDialect>> = {
  postgres: 'postgres',
  postgresql: 'postgres',
  pg: 'postgres',
  mysql: 'mysql',
  mysql2: 'mysql',
  mariadb: 'mysql',
  sqlite: 'sqlite',
  sqlite3: 'sqlite',
  'better-sqlite3': 'sqlite',
};

/**
 * The dialect under a library's own name for it.
 *
 * @throws OPTION_INVALID when it is none that Turngate speaks
 */
export function dialectOf(name: unknown): SqlDialect {
  const dialect = typeof name === 'string' ? dialects[name.toLowerCase()] : undefined;
  if (dialect === undefined) {
    throw optionError('dialect', 'PostgreSQL, MySQL, MariaDB or SQLite', name);
  }
  return dialect;
}
