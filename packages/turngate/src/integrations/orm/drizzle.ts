/** Drizzle: the `tx` of `db.transaction`, on PostgreSQL, MySQL, and synchronous SQLite. */
import type { SqlDialect, SqlSession } from '../../contract/sql-session.ts';
import { optionError } from '../../core/option.ts';
import { dialectOf, readsRows, resultOf, statementOf } from './statement.ts';

/** The part of Drizzle's `sql` that Turngate calls. */
export interface DrizzleSqlLike {
  // biome-ignore lint/suspicious/noExplicitAny: Drizzle's generics cannot be told structurally.
  raw(text: string): any;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  param(value: any): any;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  join(chunks: any[]): any;
}

interface Internals {
  execute?(query: unknown): Promise<unknown>;
  all?(query: unknown): unknown[];
  run?(query: unknown): unknown;
  readonly dialect?: object;
}

const mark = '\u0000';

/**
 * The session of a Drizzle transaction: hand it to `within`, or to any feature that takes a session.
 *
 * Drizzle over better-sqlite3 has synchronous transactions, which nothing can be awaited in: open the
 * transaction with `sqliteDatabase(db).transaction` and hand over `drizzleTx(drizzle(db), sql)`.
 *
 * @param sql Drizzle's own `sql`, by which values are bound
 * @throws OPTION_INVALID when it is no Drizzle database
 */
export function drizzleTx(tx: object, sql: DrizzleSqlLike): SqlSession {
  const handle = tx as Internals;
  const dialect = dialectIn(handle);
  if (typeof sql?.join !== 'function') throw optionError('sql', 'the sql of drizzle-orm', sql);
  return {
    dialect,
    async query(text, values) {
      const { text: marked, values: bound } = statementOf(dialect, text, values, {
        place: () => mark,
      });
      const [first, ...rest] = marked.split(mark).map((piece) => sql.raw(piece));
      const query = sql.join([first, ...rest.flatMap((piece, i) => [sql.param(bound[i]), piece])]);
      if (dialect !== 'sqlite') return resultOf(await handle.execute?.(query));
      return resultOf(readsRows(text) ? { rows: handle.all?.(query) } : handle.run?.(query));
    },
  };
}

/** Drizzle names its classes by a symbol, whatever a minifier makes of them. */
function dialectIn({ dialect }: Internals): SqlDialect {
  const kind = (dialect?.constructor as Record<symbol, unknown> | undefined)?.[
    Symbol.for('drizzle:entityKind')
  ];
  const name = typeof kind === 'string' ? /^(Pg|MySql|SQLite)/.exec(kind)?.[0] : undefined;
  if (name === undefined) throw optionError('tx', 'a transaction of Drizzle', dialect);
  return dialectOf(name);
}
