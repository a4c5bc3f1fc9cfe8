/** What the MySQL stores need from a client. Every value of an answer is the text the server sent. */
import type { SqlAnswer, SqlSession, SqlStep } from '../../contract/sql-session.ts';

/** A row by position. */
export type Row = readonly (string | null)[];

/** The answer to one statement. */
export interface Answer extends SqlAnswer {
  /** Is a transaction open after it? Undefined where the statement returned rows. */
  readonly inTransaction: boolean | undefined;
  /** What LAST_INSERT_ID(…) was given by the statement; undefined where it returned rows. */
  readonly insertId: number | undefined;
}

/** A connection: ours from the pool, or the caller's. */
export interface Link {
  readonly session: SqlSession;
  /** Does the client send several statements in one trip? (`multipleStatements` of the pool) */
  readonly oneTrip: boolean;
  /** The schema the client chose, where its name is plain ASCII; undefined when only the server knows. */
  readonly database: string | undefined;
  /** Is it certainly MariaDB? Behind a proxy nobody knows. */
  readonly mariadb: boolean;
  /** Runs the statements in order; a failure skips the rest. */
  batch(texts: readonly string[]): Promise<Answer[]>;
}

/** A connection of ours. */
export interface OwnLink<Tx> extends Link {
  /** What handlers get. */
  readonly tx: Tx;
  /** The step as one text. */
  readonly render: (step: SqlStep) => string;
  /** Gives it back to the pool. */
  release(): void;
  /** Throws it away: the server rolls back and frees its locks. */
  destroy(): void;
  /** Has it ended, by us or by the server? */
  readonly ended: boolean;
  /** Calls back when the server or the network ends it. */
  onEnd(listener: () => void): void;
}

/** The port; `Tx` is the client's own transaction handle. */
export interface MysqlDriver<Tx> {
  /** A free connection of the pool, outside any transaction. */
  connect(): Promise<OwnLink<Tx>>;
  /** The connection of a transaction that somebody else opened. */
  adopt(tx: unknown): Link;
}
