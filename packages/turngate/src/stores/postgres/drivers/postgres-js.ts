/** postgres.js (`postgres`): a reserved connection is the handler's transaction. */
import type { SqlAnswer, SqlResult, SqlStep, SqlValue } from '../../../contract/sql-session.ts';
import { errorChain, isConnectionLost } from '../../sql/sql-error.ts';
import type { PostgresDriver, PostgresSession, PostgresTransaction, Row } from '../driver.ts';
import { namedStep } from '../named-step.ts';
import * as sql from '../statements.ts';
import { beginWith, settleAll } from './batches.ts';

interface PendingRows extends Promise<readonly Record<string, unknown>[] & { count?: number }> {
  values(): Promise<readonly Row[] & { count?: number }>;
}

/** The part of a postgres.js transaction (or reserved connection) that Turngate calls. */
export interface PostgresJsTxLike {
  // biome-ignore lint/suspicious/noExplicitAny: postgres.js' generics cannot be told structurally.
  unsafe(text: string, values?: any, options?: any): any;
}

/** The part of a postgres.js `sql` that Turngate calls. */
export interface PostgresJsLike extends PostgresJsTxLike {
  reserve(): Promise<PostgresJsTxLike & { release(): void }>;
}

/** The driver over a postgres.js `sql`. */
export function postgresJsDriver(
  client: PostgresJsLike,
  options: { readonly prepare: boolean },
): PostgresDriver<PostgresJsTxLike> {
  const session = (tx: PostgresJsTxLike): PostgresSession => new Session(tx, options.prepare);
  return {
    name: 'postgres.js',
    shared: true,
    async begin(steps) {
      const reserved = await client.reserve();
      const transaction = new Transaction(reserved, options.prepare);
      return await beginWith(transaction, steps);
    },
    run: (steps) => settleAll(steps.map((step) => send(client, step, options.prepare))),
    adopt: session,
  };
}

/** The session of an open postgres.js transaction. */
export function postgresJsSession(tx: PostgresJsTxLike): PostgresSession {
  return new Session(tx, true);
}

async function send(tx: PostgresJsTxLike, step: sql.Step, prepare: boolean): Promise<SqlAnswer> {
  const { statement, values } = step;
  const rows = await (tx.unsafe(statement.text, values, { prepare }) as PendingRows).values();
  return { rows: [...rows], affectedRows: rows.count ?? rows.length };
}

class Transaction implements PostgresTransaction<PostgresJsTxLike> {
  readonly tx: PostgresJsTxLike;
  readonly session: Session;
  private readonly reserved: { release(): void };
  private released = false;

  constructor(reserved: PostgresJsTxLike & { release(): void }, prepare: boolean) {
    this.tx = reserved;
    this.session = new Session(reserved, prepare);
    this.reserved = reserved;
  }

  async commit(steps: readonly sql.Step[]): Promise<void> {
    try {
      await this.session.batch([...steps, { statement: sql.commit, values: [] }]);
    } catch (error) {
      await this.rollback();
      throw error;
    }
    this.release();
  }

  /**
   * A dead connection is taken back by postgres.js itself, and its transaction died with it. Nothing
   * may be sent on it or released: up to 3.4.9 that is an uncaught exception (porsager/postgres#1208).
   */
  async rollback(reason?: unknown): Promise<boolean> {
    if (this.session.lost || isOwnLoss(reason)) {
      this.released = true;
      return false;
    }
    const call = this.session.batch([{ statement: sql.rollback, values: [] }]);
    const answered = await call.then(
      () => true,
      () => false,
    );
    this.release();
    return answered;
  }

  destroy(): void {
    void this.rollback();
  }

  private release(): void {
    if (this.released) return;
    this.released = true;
    this.reserved.release();
  }
}

/** postgres.js puts the query on the errors it raises; other services' lost connections have none. */
function isOwnLoss(error: unknown): boolean {
  return isConnectionLost(error) && [...errorChain(error)].some((link) => 'query' in link);
}

class Session implements PostgresSession {
  readonly dialect = 'postgres';
  /** The connection has failed under a statement of ours. */
  lost = false;
  private readonly tx: PostgresJsTxLike;
  private readonly prepare: boolean;

  constructor(tx: PostgresJsTxLike, prepare: boolean) {
    this.tx = tx;
    this.prepare = prepare;
  }

  async query(text: string, values: readonly SqlValue[]): Promise<SqlResult> {
    const rows = await (this.tx.unsafe(text, values) as PendingRows);
    return { rows: [...rows], affectedRows: rows.count ?? rows.length };
  }

  together(steps: readonly SqlStep[]): Promise<SqlAnswer[]> {
    return this.batch(steps.map(namedStep));
  }

  /** Queries of one connection are pipelined by postgres.js; a failed one fails those behind it. */
  async batch(steps: readonly sql.Step[]): Promise<SqlAnswer[]> {
    try {
      return await settleAll(steps.map((step) => send(this.tx, step, this.prepare)));
    } catch (error) {
      this.lost ||= isConnectionLost(error);
      throw error;
    }
  }

  inTransaction(): boolean | undefined {
    return undefined;
  }
}
