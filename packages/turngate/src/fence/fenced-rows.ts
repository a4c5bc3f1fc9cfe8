/**
 * A fence column on the rows it protects: *enter* raises the mark and reads the row in one step,
 * every write demands that the mark is still the same.
 */
import type { SqlDialect, SqlSession, SqlValue } from '../contract/sql-session.ts';
import { knownOptions, optionError } from '../core/option.ts';
import { checkFence, staleError } from './fence-number.ts';
import { boundFence, fenceText, forUpdate, quoteName, quoteTable } from './sql-text.ts';

/** Options of {@link fencedRows}. */
export interface FencedTable {
  /** `table` or `schema.table`. */
  readonly table: string;
  /** The column that names a row, unique. @default 'id' */
  readonly idColumn?: string;
  /** The mark: `bigint NOT NULL DEFAULT 0`, written by nobody else. @default 'fence' */
  readonly fenceColumn?: string;
}

/** Rows that only the newest holder of a lock may change. */
export interface FencedRows {
  /**
   * Raises the row's mark to this fence, locks the row until the transaction ends, and returns it as
   * it is *after* that. Make it the first statement of the transaction: what was read before it may
   * be older than what another holder wrote. Repeating it with the same fence is fine.
   *
   * @returns undefined when there is no such row
   * @throws FENCE_STALE when a newer holder has entered
   * @throws OPTION_INVALID before any I/O
   */
  enter(
    session: SqlSession,
    row: { readonly id: SqlValue; readonly fence: bigint },
  ): Promise<EnteredRow | undefined>;
}

/**
 * A row entered with a fence. There is no other way to a write: a write that was not entered before
 * its first read cannot be made safe by comparing fences.
 */
export interface EnteredRow {
  /** All columns as read on entering. */
  readonly row: Readonly<Record<string, unknown>>;
  /** The fence that entered. */
  readonly fence: bigint;
  /**
   * Changes columns if the mark is still ours.
   *
   * @throws FENCE_STALE when a newer holder has entered; nothing was changed
   */
  write(changes: Readonly<Record<string, SqlValue>>): Promise<void>;
  /** Deletes the row if the mark is still ours. The mark goes with it. @throws FENCE_STALE */
  delete(): Promise<void>;
  /**
   * For statements of your own: demands that the mark is still ours and locks the row, so that
   * nobody can enter before this transaction ends. Outside a transaction it promises nothing.
   *
   * @throws FENCE_STALE
   */
  check(): Promise<void>;
  /** The same entry in a later transaction: work may span several, each one is checked. */
  in(session: SqlSession): EnteredRow;
}

/**
 * Rows with a fence column.
 *
 * Not promised: anything about rows of other tables, unless each transaction that writes them also
 * enters or checks a fenced row; and nothing against writers that do not use fences.
 *
 * @throws OPTION_INVALID for a bad name
 */
export function fencedRows(options: FencedTable): FencedRows {
  knownOptions('fencedRows()', options, ['table', 'idColumn', 'fenceColumn']);
  const texts = {
    postgres: writeTexts(options, 'postgres'),
    mysql: writeTexts(options, 'mysql'),
    sqlite: writeTexts(options, 'sqlite'),
  };
  return {
    async enter(session, { id, fence }) {
      checkFence(fence);
      return await enterRow({ session, id, fence, sql: texts[session.dialect] });
    },
  };
}

interface Texts {
  readonly what: string;
  readonly enter: string;
  readonly read: string;
  readonly touch: string;
  readonly remove: string;
  /** Columns that a write may not name. */
  readonly reserved: readonly string[];
  update(columns: readonly string[]): string;
}

interface Entry {
  readonly session: SqlSession;
  readonly id: SqlValue;
  readonly fence: bigint;
  readonly sql: Texts;
}

/** The mark as text beside the caller's own columns. */
const markColumn = 'turngate_mark';

function writeTexts(options: FencedTable, dialect: SqlDialect): Texts {
  const { table: tableName, idColumn = 'id', fenceColumn = 'fence' } = options;
  const table = quoteTable(tableName, dialect);
  const id = quoteName('idColumn', idColumn, dialect);
  const fence = quoteName('fenceColumn', fenceColumn, dialect);
  const mark = `${fenceText(fence, dialect)} AS ${markColumn}`;
  // coalesce: a column that was added without its default must not shut everybody out.
  const raise = `UPDATE ${table} SET ${fence} = ${boundFence(1, dialect)}
    WHERE ${id} = $2 AND coalesce(${fence}, 0) <= ${boundFence(3, dialect)}`;
  const returning = dialect === 'postgres' ? ` RETURNING ${table}.*, ${mark}` : '';
  return {
    what: `${tableName} row`,
    enter: raise + returning,
    read: `SELECT ${table}.*, ${mark} FROM ${table} WHERE ${id} = $1${forUpdate(dialect)}`,
    touch: `UPDATE ${table} SET ${fence} = ${fence} WHERE ${id} = $1`,
    remove: `DELETE FROM ${table} WHERE ${id} = $1 AND ${fence} = ${boundFence(2, dialect)}`,
    reserved: [idColumn, fenceColumn],
    update(columns) {
      const sets = columns.map((name, i) => `${quoteName('column', name, dialect)} = $${i + 1}`);
      const next = columns.length + 1;
      return `UPDATE ${table} SET ${sets.join(', ')}
        WHERE ${id} = $${next} AND ${fence} = ${boundFence(next + 1, dialect)}`;
    },
  };
}

async function enterRow(entry: Entry): Promise<EnteredRow | undefined> {
  const { session, id, fence, sql } = entry;
  const raised = await session.query(sql.enter, [String(fence), id, String(fence)]);
  const found = raised.rows[0] ?? (await readRow(entry));
  if (found === undefined) return undefined;
  const { [markColumn]: mark, ...row } = found;
  if (mark !== String(fence)) throw staleError(sql.what, fence, asFence(mark));
  return entered(entry, row);
}

function entered(entry: Entry, row: Readonly<Record<string, unknown>>): EnteredRow {
  const { session, id, fence, sql } = entry;
  const change = async (text: string, values: readonly SqlValue[]): Promise<void> => {
    const { affectedRows } = await session.query(text, [...values, id, String(fence)]);
    // MySQL can be told to count only rows that became different: then 0 proves nothing.
    if (affectedRows === 0) await checkRow(entry);
  };
  return {
    row,
    fence,
    async write(changes) {
      const columns = Object.keys(changes);
      if (columns.length === 0) throw optionError('changes', 'at least one column', changes);
      for (const name of columns) {
        if (sql.reserved.includes(name)) {
          throw optionError('changes', 'without the id and the fence column', name);
        }
      }
      await change(sql.update(columns), Object.values(changes));
    },
    async delete() {
      await change(sql.remove, []);
    },
    check: () => checkRow(entry),
    in: (later) => entered({ ...entry, session: later }, row),
  };
}

async function checkRow(entry: Entry): Promise<void> {
  const { session, id, fence, sql } = entry;
  // SQLite: a read takes no write lock, and another connection could enter before the commit.
  if (session.dialect === 'sqlite') await session.query(sql.touch, [id]);
  const mark = (await readRow(entry))?.[markColumn];
  if (mark !== String(fence)) throw staleError(sql.what, fence, asFence(mark));
}

async function readRow({ session, id, sql }: Entry): Promise<Record<string, unknown> | undefined> {
  return (await session.query(sql.read, [id])).rows[0];
}

function asFence(mark: unknown): bigint | undefined {
  return typeof mark === 'string' ? BigInt(mark) : undefined;
}
