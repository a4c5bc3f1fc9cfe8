/**
 * Several prepared statements in one trip on an ordinary node-postgres client: Parse where needed,
 * Bind and Execute for each, one Sync. The server skips the rest after a failure. This is what makes
 * BEGIN travel with the claim and the result with COMMIT (measured: 0.78 of the bare transaction,
 * against 0.45 with a trip per statement and 0.55 with one text of several statements).
 *
 * It uses the interface node-postgres gives to query classes of other packages (pg-cursor is one).
 */
import type { SqlAnswer } from '../../../contract/sql-session.ts';
import type { Row } from '../driver.ts';
import type { Step } from '../statements.ts';

/** The part of a node-postgres connection that query classes write to. */
export interface PgConnection {
  readonly stream: { cork(): void; uncork(): void };
  parse(message: { name: string; text: string; types: readonly number[] }): void;
  bind(message: { statement: string; values: readonly unknown[]; valueMapper?: unknown }): void;
  execute(message: object): void;
  close(message: { type: 'S'; name: string }): void;
  sync(): void;
}

/** 'ready': prepared for certain. 'doubtful': perhaps, so it is closed before it is parsed again. */
type Prepared = Map<string, 'ready' | 'doubtful'>;

/** Under a registered symbol: two copies of this package on one pool must know of each other. */
const registry = globalThis as { [key: symbol]: WeakMap<PgConnection, Prepared> | undefined };
const registryKey = Symbol.for('turngate.pg.prepared');
const preparedOn = registry[registryKey] ?? new WeakMap<PgConnection, Prepared>();
registry[registryKey] = preparedOn;

/** One trip. Create it, then give it to `client.query(batch)`. */
export class PgBatch {
  /** node-postgres replaces it when `query_timeout` is set, so it must be this property. */
  callback: ((error: unknown, answers?: SqlAnswer[]) => void) | undefined;
  private readonly steps: readonly Step[];
  private readonly prepare: boolean;
  private readonly answers: { readonly rows: Row[]; affectedRows: number }[];
  private readonly fresh: string[] = [];
  private prepared: Prepared = new Map();
  private finished = 0;

  constructor(steps: readonly Step[], prepare: boolean) {
    this.steps = steps;
    this.prepare = prepare;
    this.answers = steps.map(() => ({ rows: [], affectedRows: 0 }));
  }

  /** Called by the client when it is this batch's turn. An error is returned, never thrown. */
  submit(connection: PgConnection): Error | null {
    const known = preparedOn.get(connection);
    if (known === undefined) preparedOn.set(connection, this.prepared);
    else this.prepared = known;
    connection.stream.cork();
    try {
      for (const step of this.steps) this.write(connection, step);
      connection.sync();
      return null;
    } catch (error) {
      return error as Error;
    } finally {
      connection.stream.uncork();
    }
  }

  private write(connection: PgConnection, { statement, values }: Step): void {
    const name = this.prepare ? statement.name : '';
    const state = this.prepare ? this.prepared.get(name) : undefined;
    if (state !== 'ready') {
      if (state === 'doubtful') connection.close({ type: 'S', name });
      connection.parse({ name, text: statement.text, types: [] });
      this.fresh.push(name);
      this.prepared.set(name, 'doubtful');
    }
    connection.bind({ statement: name, values });
    connection.execute({});
  }

  handleDataRow(message: { fields: Row }): void {
    this.answers[this.finished]?.rows.push(message.fields);
  }

  /** @param message its text ends in the number of rows, as in "INSERT 0 1" */
  handleCommandComplete(message: { text?: string }): void {
    const answer = this.answers[this.finished++];
    const [count] = /\d+$/.exec(message.text ?? '') ?? [];
    if (answer !== undefined && count !== undefined) answer.affectedRows = Number(count);
  }

  handleError(error: unknown): void {
    const code = (error as { code?: unknown } | undefined)?.code;
    // 26000: somebody deallocated; 0A000: a table changed under a plan. Trust no name any more.
    if (code === '26000' || code === '0A000') {
      for (const name of this.prepared.keys()) this.prepared.set(name, 'doubtful');
    }
    this.end(error);
  }

  handleReadyForQuery(): void {
    if (this.prepare) for (const name of this.fresh) this.prepared.set(name, 'ready');
    this.end(null);
  }

  private end(error: unknown): void {
    const { callback } = this;
    this.callback = undefined;
    if (error === null) callback?.(null, this.answers);
    else callback?.(error);
  }

  // Messages the client passes on that mean nothing here.
  handleRowDescription(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyData(): void {}
  handleCopyInResponse(): void {}
}
