/** The slice of an open SQL transaction that flows and, later, inbox, outbox and stock speak to. */

/** Values that may be bound. Amounts are bigint or safe integers, never floats. */
export type SqlValue = string | number | bigint | boolean | Date | Uint8Array | null;

/** Rows and the number of rows the statement touched. */
export interface SqlResult {
  readonly rows: readonly Record<string, unknown>[];
  readonly affectedRows: number;
}

/** A statement with its values. */
export interface SqlStep {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** The answer to a step: rows by position, every value as text. */
export interface SqlAnswer {
  readonly rows: readonly (readonly (string | null)[])[];
  readonly affectedRows: number;
}

/** Which SQL a server speaks. Whoever writes one text per dialect asks the session. */
export type SqlDialect = 'postgres' | 'mysql' | 'sqlite';

/** What a text must know about the server it is for. */
export interface SqlServer {
  readonly dialect: SqlDialect;
  /** Does `INSERT … RETURNING` give rows? Absent: everywhere but in the dialect `mysql`. */
  readonly returning?: boolean;
}

/** An open transaction. Statements use `$1`, `$2`, … whatever the driver. */
export interface SqlSession extends SqlServer {
  query(text: string, values: readonly SqlValue[]): Promise<SqlResult>;
  /**
   * Sends the steps in one trip and runs them in order; a failure skips the rest. Absent where the client
   * cannot: then they are sent one after the other.
   */
  together?(steps: readonly SqlStep[]): Promise<readonly SqlAnswer[]>;
}

/** What leaves together with the transaction's own statements. */
export interface SqlEnds<T> {
  /** Sent with BEGIN; the answers are given to the work. */
  readonly first?: (server: SqlServer) => readonly SqlStep[];
  /** Sent with COMMIT. */
  readonly last?: (value: T) => readonly SqlStep[];
}

/** A database in which relays, jobs, sweepers and coordinators open transactions of their own. */
export interface SqlDatabase<Tx = unknown> {
  readonly dialect: SqlDialect;
  /** One transaction around `work`: committed when it returns, rolled back when it throws. */
  transaction<T>(
    work: (session: SqlSession, tx: Tx, first: readonly SqlAnswer[]) => Promise<T>,
    ends?: SqlEnds<T>,
  ): Promise<T>;
  /** One statement outside any transaction. */
  query(text: string, values: readonly SqlValue[]): Promise<SqlResult>;
  /** The open transaction behind a handler's `tx`. */
  session(tx: Tx): SqlSession;
}

/**
 * Is it a ready session, rather than a client's own transaction handle? Stores take both wherever they
 * take a transaction.
 */
export function isSqlSession(tx: unknown): tx is SqlSession {
  if (typeof tx !== 'object' || tx === null) return false;
  const { dialect, query } = tx as Partial<SqlSession>;
  const known = dialect === 'postgres' || dialect === 'mysql' || dialect === 'sqlite';
  return known && typeof query === 'function';
}
