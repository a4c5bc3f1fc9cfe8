/** The driver over a mysql2 pool, callback or promise style, told by shape. */
import {
  isSqlSession,
  type SqlAnswer,
  type SqlResult,
  type SqlSession,
  type SqlStep,
  type SqlValue,
} from '../../contract/sql-session.ts';
import { optionError } from '../../core/option.ts';
import type { Deadlines } from '../../runtime/deadlines.ts';
import type { Answer, Link, MysqlDriver, OwnLink, Row } from './driver.ts';
import { render } from './placeholders.ts';
import { readyLink } from './ready-session.ts';

/** The part of a mysql2 promise connection that Turngate calls; a handler's `tx` is one. */
export interface MysqlConnectionLike {
  // biome-ignore lint/suspicious/noExplicitAny: mysql2's own overloads cannot be told structurally.
  query(sql: any, values?: any): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  execute(sql: any, values?: any): Promise<any>;
}

/** The part of a mysql2 promise pool that Turngate calls (`mysql2/promise`). */
export interface MysqlPromisePoolLike {
  getConnection(): Promise<MysqlConnectionLike>;
}

/** The part of a mysql2 callback pool that Turngate calls (`mysql2`). */
export interface MysqlCallbackPoolLike {
  // biome-ignore lint/suspicious/noExplicitAny: mysql2's own overloads cannot be told structurally.
  getConnection(callback: (error: any, connection: any) => any): void;
  promise(): MysqlPromisePoolLike;
}

/** A pool Turngate can use. */
export type MysqlPool = MysqlPromisePoolLike | MysqlCallbackPoolLike;

type Callback<T> = (error: Error | null, value: T) => void;

/** The core of both styles of a connection. */
interface RawConnection {
  query(options: object, callback: Callback<unknown>): unknown;
  escape(value: unknown): string;
  promise(): MysqlConnectionLike;
  release(): void;
  destroy(): void;
  readonly stream?: {
    readonly destroyed?: boolean;
    once(event: 'close', listener: () => void): unknown;
  };
  readonly config?: { readonly multipleStatements?: boolean; readonly database?: string };
  readonly _handshakePacket?: { readonly serverVersion?: string };
}

interface RawPool {
  getConnection(callback: Callback<RawConnection>): void;
}

/** Status bits of an OK packet. */
const inTransactionBit = 1;
const autocommitBit = 2;

/** Counted as a lost connection, because nobody knows what the server did. */
class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
  readonly code = 'ETIMEDOUT';
}

/** @throws OPTION_INVALID when it is no mysql2 pool */
export function mysql2Driver(
  client: unknown,
  deadlines: Deadlines,
): MysqlDriver<MysqlConnectionLike> {
  const pool = rawPool(client);
  return {
    async connect() {
      const call = checkOut(pool);
      try {
        return new PoolLink(await deadlines.limit(call, late), deadlines);
      } catch (error) {
        // A connection that comes too late goes straight back.
        if (error instanceof NoAnswer)
          call.then(
            (raw) => raw.release(),
            () => {},
          );
        throw error;
      }
    },
    adopt: (tx) =>
      isSqlSession(tx) ? readyLink(tx) : new CallerLink(rawConnection(tx), deadlines),
  };
}

/** The open transaction behind a handle of either style, or of an ORM. */
export function mysql2Session(tx: unknown): SqlSession {
  if (isSqlSession(tx)) return tx;
  return new Session(rawConnection(tx));
}

function late(): Error {
  return new NoAnswer('no answer from the database in time');
}

function rawPool(client: unknown): RawPool {
  const pool = client as Record<string, unknown> | null | undefined;
  if (typeof pool?.['getConnection'] === 'function') {
    if (typeof pool['promise'] === 'function') return pool as unknown as RawPool;
    const core = pool['pool'] as Record<string, unknown> | undefined;
    if (typeof core?.['getConnection'] === 'function') return core as unknown as RawPool;
  }
  throw optionError('pool', 'a mysql2 pool', client);
}

function rawConnection(tx: unknown): RawConnection {
  const handle = tx as Record<string, unknown> | null | undefined;
  const raw = (handle?.['connection'] ?? handle) as Record<string, unknown> | null | undefined;
  if (typeof raw?.['query'] === 'function' && typeof raw['promise'] === 'function') {
    return raw as unknown as RawConnection;
  }
  throw optionError('tx', 'a mysql2 connection', tx);
}

function checkOut(pool: RawPool): Promise<RawConnection> {
  return new Promise((resolve, reject) => {
    pool.getConnection((error, raw) => (error === null ? resolve(raw) : reject(error)));
  });
}

function send(raw: RawConnection, options: object): Promise<unknown> {
  return new Promise((resolve, reject) => {
    raw.query(options, (error, result) => (error === null ? resolve(result) : reject(error)));
  });
}

/** The bytes the server sent, whatever the pool says about dates, decimals, booleans or big numbers. */
const asSent = {
  rowsAsArray: true,
  nestTables: false,
  typeCast: (field: { buffer(): Buffer | null }) => field.buffer(),
};
const asObjects = {
  rowsAsArray: false,
  nestTables: false,
  supportBigNumbers: true,
  bigNumberStrings: true,
  typeCast: (_field: unknown, next: () => unknown) => next(),
};

const plainName = /^[\x21-\x7e]+$/;

class CallerLink implements Link {
  readonly session: SqlSession;
  readonly oneTrip: boolean;
  readonly database: string | undefined;
  protected readonly raw: RawConnection;
  private readonly deadlines: Deadlines;

  constructor(raw: RawConnection, deadlines: Deadlines) {
    this.raw = raw;
    this.deadlines = deadlines;
    this.session = new Session(raw);
    this.oneTrip = inOneTrip(raw);
    const database = raw.config?.database;
    this.database = database !== undefined && plainName.test(database) ? database : undefined;
  }

  get mariadb(): boolean {
    return isMariadb(this.raw);
  }

  async batch(texts: readonly string[]): Promise<Answer[]> {
    try {
      return await this.deadlines.limit(sendAll(this.raw, texts), late);
    } catch (error) {
      // What comes back later would be taken for the answer to something else.
      if (error instanceof NoAnswer) this.raw.destroy();
      throw error;
    }
  }
}

class PoolLink extends CallerLink implements OwnLink<MysqlConnectionLike> {
  readonly render = (step: SqlStep): string => rendered(this.raw, step);
  private left = false;
  private handle: MysqlConnectionLike | undefined;

  get tx(): MysqlConnectionLike {
    this.handle ??= this.raw.promise();
    return this.handle;
  }

  get ended(): boolean {
    return this.left || this.raw.stream?.destroyed === true;
  }

  onEnd(listener: () => void): void {
    this.raw.stream?.once('close', listener);
  }

  release(): void {
    if (this.left) return;
    this.left = true;
    this.raw.release();
  }

  destroy(): void {
    if (this.left) return;
    this.left = true;
    this.raw.destroy();
  }
}

class Session implements SqlSession {
  readonly dialect = 'mysql';
  readonly returning: boolean;
  private readonly raw: RawConnection;

  constructor(raw: RawConnection) {
    this.raw = raw;
    this.returning = isMariadb(raw);
  }

  async query(text: string, values: readonly SqlValue[]): Promise<SqlResult> {
    const result = await send(this.raw, {
      ...asObjects,
      sql: rendered(this.raw, { text, values }),
    });
    if (Array.isArray(result)) return { rows: result, affectedRows: result.length };
    return { rows: [], affectedRows: (result as { affectedRows: number }).affectedRows };
  }

  together(steps: readonly SqlStep[]): Promise<readonly SqlAnswer[]> {
    return sendAll(
      this.raw,
      steps.map((step) => rendered(this.raw, step)),
    );
  }
}

function isMariadb(raw: RawConnection): boolean {
  return raw._handshakePacket?.serverVersion?.includes('MariaDB') === true;
}

function inOneTrip(raw: RawConnection): boolean {
  return raw.config?.multipleStatements === true;
}

function rendered(raw: RawConnection, { text, values }: SqlStep): string {
  return render(text, values, (value) => raw.escape(value));
}

async function sendAll(raw: RawConnection, texts: readonly string[]): Promise<Answer[]> {
  if (inOneTrip(raw) && texts.length > 1) {
    const results = await send(raw, { ...asSent, sql: texts.join(';\n') });
    return (results as unknown[]).map(answerOf);
  }
  const answers: Answer[] = [];
  for (const sql of texts) answers.push(answerOf(await send(raw, { ...asSent, sql })));
  return answers;
}

function answerOf(result: unknown): Answer {
  if (Array.isArray(result)) {
    // A CALL answers with its rows and a header of its own behind them.
    const isCall = result.length > 0 && !Array.isArray(result.at(-1));
    const rows = ((isCall ? result[0] : result) as (Buffer | null)[][]).map(textRow);
    return { rows, affectedRows: rows.length, inTransaction: undefined, insertId: undefined };
  }
  const {
    affectedRows,
    insertId,
    serverStatus: status,
  } = result as { affectedRows: number; insertId: number; serverStatus?: number };
  const inTransaction =
    status === undefined
      ? undefined
      : (status & inTransactionBit) !== 0 || (status & autocommitBit) === 0;
  return { rows: [], affectedRows, inTransaction, insertId: Number(insertId) };
}

function textRow(row: readonly (Buffer | null)[]): Row {
  return row.map((value) => (value === null ? null : value.toString('utf8')));
}
