/** The slice of an open SQL transaction that flows and, later, inbox, outbox and stock speak to. */

/** Values that may be bound. Amounts are bigint or safe integers, never floats. */
export type SqlValue = string | number | bigint | boolean | Date | Uint8Array | null;

/** Rows and the number of rows the statement touched. */
export interface SqlResult {
  readonly rows: readonly Record<string, unknown>[];
  readonly affectedRows: number;
}

/** An open transaction. Statements use `$1`, `$2`, … whatever the driver. */
export interface SqlSession {
  query(text: string, values: readonly SqlValue[]): Promise<SqlResult>;
}
