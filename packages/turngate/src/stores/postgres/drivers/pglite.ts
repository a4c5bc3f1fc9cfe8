/**
 * PGlite: PostgreSQL in this process with ONE session. Transactions queue up inside PGlite, so claims
 * never compete; nothing is shared with other processes, and its files have no lock of their own.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { SqlAnswer, SqlResult, SqlValue } from '../../../contract/sql-session.ts';
import { TurngateError } from '../../../core/errors.ts';
import type { PostgresDriver, PostgresSession, PostgresTransaction, Row } from '../driver.ts';
import type { Step } from '../statements.ts';

interface Rows<T> {
  readonly rows: T[];
  readonly affectedRows?: number;
}

/** The part of a PGlite transaction that Turngate calls; a handler's `tx` is one. */
export interface PGliteTxLike {
  // biome-ignore lint/suspicious/noExplicitAny: PGlite's generics cannot be told structurally.
  query(text: string, values?: any[], options?: any): Promise<any>;
}

/** The part of a PGlite database that Turngate calls. */
export interface PGliteLike extends PGliteTxLike {
  readonly waitReady: Promise<void>;
  // biome-ignore lint/suspicious/noExplicitAny: PGlite's generics cannot be told structurally.
  transaction(body: (tx: any) => Promise<any>): Promise<any>;
}

/** The databases in whose only session the running code is. */
const entered = new AsyncLocalStorage<readonly PGliteLike[]>();

/** The driver over a PGlite database. */
export function pgliteDriver(db: PGliteLike): PostgresDriver<PGliteTxLike> {
  return {
    name: 'pglite',
    shared: false,
    async begin(steps) {
      refuseNested(db);
      const transaction = await Transaction.open(db);
      try {
        return { transaction, answers: await transaction.session.batch(steps) };
      } catch (error) {
        await transaction.rollback();
        throw error;
      }
    },
    async run(steps) {
      refuseNested(db);
      return await new Session(db).batch(steps);
    },
    adopt: (tx) => new Session(tx),
    enter: (work) => entered.run([...(entered.getStore() ?? []), db], work),
  };
}

/** In PGlite such a call would never settle: it waits for the transaction that waits for it. */
function refuseNested(db: PGliteLike): void {
  if (entered.getStore()?.includes(db) !== true) return;
  const message =
    'this call would wait for the PGlite transaction it is made in: hand the transaction over instead (within, tx)';
  throw new TurngateError('OPERATION_NESTED', message);
}

/** The session of an open PGlite transaction. */
export function pgliteSession(tx: PGliteTxLike): PostgresSession {
  return new Session(tx);
}

class Undo extends Error {}

/** Turns PGlite's callback form, which sends BEGIN and COMMIT itself, inside out. */
class Transaction implements PostgresTransaction<PGliteTxLike> {
  readonly tx: PGliteTxLike;
  readonly session: PostgresSession;
  private readonly settle: { commit(): void; rollback(): void };
  private readonly ended: Promise<void>;

  private constructor(
    tx: PGliteTxLike,
    settle: { commit(): void; rollback(): void },
    ended: Promise<void>,
  ) {
    this.tx = tx;
    this.session = new Session(tx);
    this.settle = settle;
    this.ended = ended;
  }

  static open(db: PGliteLike): Promise<Transaction> {
    return new Promise((resolve, reject) => {
      let ended!: Promise<void>;
      const body = (tx: PGliteTxLike): Promise<void> =>
        new Promise((commit, undo) => {
          const settle = { commit, rollback: () => undo(new Undo('rolled back')) };
          // `ended` is set by then: PGlite calls the body after transaction() has returned.
          queueStart(() => resolve(new Transaction(tx, settle, ended)));
        });
      ended = db.transaction(body) as Promise<void>;
      ended.catch((error: unknown) => {
        if (!(error instanceof Undo)) reject(error);
      });
    });
  }

  async commit(steps: readonly Step[]): Promise<void> {
    try {
      await this.session.batch(steps);
    } catch (error) {
      await this.rollback();
      throw error;
    }
    this.settle.commit();
    await this.ended;
  }

  async rollback(): Promise<boolean> {
    this.settle.rollback();
    await this.ended.catch(() => undefined);
    return true;
  }

  destroy(): void {
    this.settle.rollback();
  }
}

function queueStart(start: () => void): void {
  void Promise.resolve().then(start);
}

class Session implements PostgresSession {
  readonly dialect = 'postgres';
  private readonly tx: PGliteTxLike;

  constructor(tx: PGliteTxLike) {
    this.tx = tx;
  }

  async query(text: string, values: readonly SqlValue[]): Promise<SqlResult> {
    if (this.isDatabase) refuseNested(this.tx as PGliteLike);
    const result = (await this.tx.query(text, [...values])) as Rows<Record<string, unknown>>;
    return { rows: result.rows, affectedRows: result.affectedRows ?? result.rows.length };
  }

  async batch(steps: readonly Step[]): Promise<SqlAnswer[]> {
    const answers: SqlAnswer[] = [];
    for (const { statement, values } of steps) {
      const { text } = statement;
      const result = (await this.tx.query(text, [...values], { rowMode: 'array' })) as Rows<Row>;
      answers.push({ rows: result.rows, affectedRows: result.affectedRows ?? result.rows.length });
    }
    return answers;
  }

  inTransaction(): boolean | undefined {
    return this.isDatabase ? false : undefined;
  }

  /** Is it the database, which is no transaction, whatever is open in its session? */
  private get isDatabase(): boolean {
    return 'waitReady' in this.tx;
  }
}
