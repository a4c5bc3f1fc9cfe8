/** node-postgres (`pg`): a Pool, whose clients are the handlers' transactions. */
import type { SqlAnswer, SqlResult, SqlStep, SqlValue } from '../../../contract/sql-session.ts';
import type { PostgresDriver, PostgresSession, PostgresTransaction, Row } from '../driver.ts';
import { namedStep } from '../named-step.ts';
import * as sql from '../statements.ts';
import { beginWith, settleAll } from './batches.ts';
import { PgBatch, type PgConnection } from './pg-batch.ts';
import { checkOut, giveBack } from './pg-checkout.ts';
import type { PgClientLike, PgPoolClientLike, PgPoolLike } from './pg-types.ts';

interface Internals {
  readonly connection?: Partial<PgConnection>;
  readonly pipeline?: boolean;
  getTransactionStatus?(): string | null;
}

type Result = { rows: Record<string, unknown>[]; rowCount: number | null };

/** Options of the pg driver. */
export interface PgDriverOptions {
  readonly prepare: boolean;
}

/** The driver over a `pg.Pool`. */
export function pgDriver(pool: PgPoolLike, options: PgDriverOptions): PostgresDriver<PgClientLike> {
  const session = (client: PgClientLike): PostgresSession => new PgSession(client, options);
  return {
    name: 'pg',
    shared: true,
    async begin(steps, patience = {}) {
      const client = await checkOut(pool);
      const transaction = new PgTransaction(client, session(client));
      patience.giveUp = () => transaction.destroy();
      return await beginWith(transaction, steps);
    },
    async run(steps, patience = {}) {
      const client = await checkOut(pool);
      const lease = new ClientLease(client);
      patience.giveUp = () => lease.destroy();
      try {
        const answers = await session(client).batch(steps);
        lease.end();
        return answers;
      } catch (error) {
        lease.end(error as Error);
        throw error;
      }
    },
    adopt: session,
  };
}

/** The session of a client that has a transaction open. */
export function pgSession(client: PgClientLike): PostgresSession {
  return new PgSession(client, { prepare: true });
}

/** A client of ours until it is given back, once. */
class ClientLease {
  private readonly client: PgPoolClientLike;
  private ended = false;

  constructor(client: PgPoolClientLike) {
    this.client = client;
  }

  end(broken?: Error): void {
    if (this.ended) return;
    this.ended = true;
    giveBack(this.client, broken);
  }

  destroy(): void {
    this.end(new Error('thrown away by Turngate'));
  }
}

class PgTransaction implements PostgresTransaction<PgClientLike> {
  readonly tx: PgClientLike;
  readonly session: PostgresSession;
  private readonly lease: ClientLease;

  constructor(client: PgPoolClientLike, session: PostgresSession) {
    this.tx = client;
    this.session = session;
    this.lease = new ClientLease(client);
  }

  async commit(steps: readonly sql.Step[]): Promise<void> {
    try {
      await this.session.batch([...steps, { statement: sql.commit, values: [] }]);
      this.lease.end();
    } catch (error) {
      await this.rollback();
      throw error;
    }
  }

  async rollback(): Promise<boolean> {
    try {
      await this.session.batch([{ statement: sql.rollback, values: [] }]);
      this.lease.end();
      return true;
    } catch (error) {
      this.lease.end(error as Error);
      return false;
    }
  }

  destroy(): void {
    this.lease.destroy();
  }
}

class PgSession implements PostgresSession {
  readonly dialect = 'postgres';
  private readonly client: PgClientLike & Internals;
  private readonly prepare: boolean;

  constructor(client: PgClientLike, options: PgDriverOptions) {
    this.client = client as PgClientLike & Internals;
    this.prepare = options.prepare;
  }

  async query(text: string, values: readonly SqlValue[]): Promise<SqlResult> {
    const result = (await this.client.query(text, values)) as Result;
    return { rows: result.rows, affectedRows: result.rowCount ?? 0 };
  }

  together(steps: readonly SqlStep[]): Promise<SqlAnswer[]> {
    return this.batch(steps.map(namedStep));
  }

  batch(steps: readonly sql.Step[]): Promise<SqlAnswer[]> {
    const { client } = this;
    if (client.pipeline === true) {
      // Written one after the other without waiting; a failed one fails those behind it.
      return settleAll(steps.map((step) => this.single(step)));
    }
    // pg-native: no wire to write to.
    if (typeof client.connection?.parse !== 'function') return this.oneByOne(steps);
    return new Promise((resolve, reject) => {
      const batch = new PgBatch(steps, this.prepare);
      batch.callback = (error, answers) =>
        error === null || error === undefined ? resolve(answers as SqlAnswer[]) : reject(error);
      client.query(batch);
    });
  }

  private async oneByOne(steps: readonly sql.Step[]): Promise<SqlAnswer[]> {
    const answers: SqlAnswer[] = [];
    for (const step of steps) answers.push(await this.single(step));
    return answers;
  }

  inTransaction(): boolean | undefined {
    const status = this.client.getTransactionStatus?.();
    return status === undefined || status === null ? undefined : status !== 'I';
  }

  private async single({ statement, values }: sql.Step): Promise<SqlAnswer> {
    const named = this.prepare ? { name: statement.name } : {};
    const config = { ...named, text: statement.text, values, rowMode: 'array' };
    const answer = this.client.query(config) as Promise<{ rows: Row[]; rowCount: number | null }>;
    const { rows, rowCount } = await answer;
    return { rows, affectedRows: rowCount ?? 0 };
  }
}
