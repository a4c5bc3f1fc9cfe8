/** What the trade needs from its database: the gate, and SQL that runs on every supported one. */
import type { Gate } from 'turngate';
import type { SqlDatabase, SqlDialect, SqlSession } from 'turngate/contract';

/** A transaction handle: only the store's own code looks inside. */
export type Tx = unknown;

/** The gate and the database behind it. */
export interface Store {
  readonly gate: Gate<Tx>;
  readonly database: SqlDatabase<Tx>;
  /** A transaction that only reads, and sees one moment of all tables. */
  snapshot<T>(read: (sql: SqlSession) => Promise<T>): Promise<T>;
}

const clocks: Record<SqlDialect, string> = {
  postgres: 'CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)',
  mysql: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) DIV 1000)",
  sqlite: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
};

/** An SQL expression for the database's own time, in epoch milliseconds. */
export function nowMs(sql: { readonly dialect: SqlDialect }): string {
  return clocks[sql.dialect];
}

/** The first row of a query, or undefined. */
export async function firstRow(
  sql: SqlSession,
  text: string,
  values: Parameters<SqlSession['query']>[1],
): Promise<Record<string, unknown> | undefined> {
  return (await sql.query(text, values)).rows[0];
}

/** Epoch milliseconds from the database as ISO text. */
export function isoTime(ms: unknown): string {
  return new Date(Number(ms)).toISOString();
}
