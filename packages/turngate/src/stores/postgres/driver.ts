/** What a PostgreSQL client must be able to do for us; one small file per client in drivers/. */
import type { SqlAnswer, SqlSession } from '../../contract/sql-session.ts';
import type { Step } from './statements.ts';

/** A row by position. Our statements cast every column to text, so all clients agree. */
export type Row = readonly (string | null)[];

/** Inside an open transaction. */
export interface PostgresSession extends SqlSession {
  /** Sends all steps at once where the client can; runs them in order; a failure skips the rest. */
  batch(steps: readonly Step[]): Promise<SqlAnswer[]>;
  /** Is a transaction open? Undefined where the client cannot tell. */
  inTransaction(): boolean | undefined;
}

/** A transaction of ours on a connection of its own. */
export interface PostgresTransaction<Tx> {
  /** What the handler gets. */
  readonly tx: Tx;
  readonly session: PostgresSession;
  /** Sends the steps and COMMIT together, then gives the connection back. */
  commit(steps: readonly Step[]): Promise<void>;
  /**
   * Rolls back and gives the connection back. Never rejects: a broken connection is thrown away, and
   * the answer is false.
   *
   * @param reason the error that leads to it, by which a client may know its connection dead
   */
  rollback(reason?: unknown): Promise<boolean>;
  /** Throws the connection away: nobody may use it again. */
  destroy(): void;
}

/** How whoever waits for a call tells the driver that nobody waits any more. */
export interface Patience {
  /** Throws away the connection the call is on. The driver sets it as soon as there is one. */
  giveUp?: () => void;
}

/** The port; `Tx` is the client's own transaction handle. */
export interface PostgresDriver<Tx> {
  readonly name: string;
  /** Can other processes use the same database? */
  readonly shared: boolean;
  /** Gets a connection and sends BEGIN with the steps. */
  begin(
    steps: readonly Step[],
    patience?: Patience,
  ): Promise<{ transaction: PostgresTransaction<Tx>; answers: SqlAnswer[] }>;
  /**
   * Statements outside any transaction, in one trip where the client can. Whether they share one is not
   * promised.
   */
  run(steps: readonly Step[], patience?: Patience): Promise<SqlAnswer[]>;
  /** The session of a transaction somebody else opened. */
  adopt(tx: Tx): PostgresSession;
  /**
   * Runs work inside a transaction. A client with one session remembers it, so that a call from inside
   * which would wait for its own transaction is refused instead.
   */
  enter?<T>(work: () => Promise<T>): Promise<T>;
}
