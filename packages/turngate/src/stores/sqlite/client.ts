/**
 * The client: better-sqlite3, libsql or `node:sqlite`, which have one shape. Statements are synchronous,
 * and one handle is one session, so everything of ours on a handle takes turns.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { SqlResult, SqlSession, SqlValue } from '../../contract/sql-session.ts';
import { TurngateError } from '../../core/errors.ts';
import { optionError } from '../../core/option.ts';
import { placed, sqlPieces } from '../../core/sql-placeholders.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { backoffMs, sleep } from '../../runtime/wait.ts';
import { isBusy } from './sqlite-error.ts';

/** A prepared statement, as far as Turngate calls it. */
export interface SqliteStatementLike {
  // biome-ignore lint/suspicious/noExplicitAny: the clients' own types of values differ.
  run(...values: any[]): { changes: number | bigint };
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  all(...values: any[]): any[];
}

/** The part of a better-sqlite3, libsql or `node:sqlite` database that Turngate calls. */
export interface SqliteLike {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatementLike;
}

interface Internals extends SqliteStatementLike {
  /** better-sqlite3 and libsql. */
  readonly reader?: boolean;
  safeIntegers?(on: boolean): unknown;
  /** `node:sqlite`. */
  columns?(): readonly unknown[];
  setReadBigInts?(on: boolean): unknown;
}

const statementsMax = 200;
/** Sleeps between two tries at another process's lock. */
const lockPoll = { baseMs: 1, capMs: 20 };
/** The connections whose turn the running code is in. */
const turns = new AsyncLocalStorage<readonly SqliteConnection[]>();
const connections = new WeakMap<object, SqliteConnection>();

/** @throws OPTION_INVALID when it is no such database */
export function connectionOf(db: unknown): SqliteConnection {
  const client = db as Partial<SqliteLike> | null | undefined;
  const known = typeof client?.exec === 'function' && typeof client.prepare === 'function';
  if (!known || typeof client !== 'object') {
    throw optionError('db', 'a better-sqlite3, libsql or node:sqlite database', db);
  }
  let connection = connections.get(client);
  if (connection === undefined) {
    connection = new SqliteConnection(client as SqliteLike);
    connections.set(client, connection);
  }
  return connection;
}

/** One handle, shared by all stores that were opened on it. */
export class SqliteConnection implements SqlSession {
  readonly dialect = 'sqlite';
  readonly db: SqliteLike;
  /** Identities whose work runs in a transaction of this handle. */
  readonly running: Set<string> = new Set<string>();
  private readonly statements = new Map<string, Internals>();
  private last: Promise<unknown> = Promise.resolve();
  private file: boolean | undefined;

  constructor(db: SqliteLike) {
    this.db = db;
  }

  /** Is it a file, which outlives the process and can be opened by others? */
  get isFile(): boolean {
    if (this.file === undefined) {
      const [main] = this.querySync('PRAGMA database_list', []).rows;
      this.file = String(main?.['file'] ?? '') !== '';
    }
    return this.file;
  }

  async query(text: string, values: readonly SqlValue[]): Promise<SqlResult> {
    return this.querySync(text, values);
  }

  querySync(text: string, values: readonly SqlValue[]): SqlResult {
    const { text: own, values: ordered } = placed(sqlPieces(text, 'sqlite'), values, () => '?');
    const statement = this.prepared(own);
    const bound = ordered.map(bindable);
    if (!readsRows(statement, own)) {
      return { rows: [], affectedRows: Number(statement.run(...bound).changes) };
    }
    const rows = (statement.all(...bound) as Record<string, unknown>[]).map(readable);
    return { rows, affectedRows: rows.length };
  }

  /**
   * Runs `body` when nobody else of ours is on the handle.
   *
   * @throws OPERATION_NESTED when called from inside such a body: it would wait for itself
   */
  async turn<T>(body: () => Promise<T>): Promise<T> {
    const outer = turns.getStore() ?? [];
    if (outer.includes(this)) {
      const message =
        'this call would wait for the SQLite transaction it is made in: hand the transaction over instead (within, tx)';
      throw new TurngateError('OPERATION_NESTED', message);
    }
    const before = this.last;
    let end!: () => void;
    this.last = new Promise<void>((resolve) => {
      end = resolve;
    });
    await before;
    try {
      return await turns.run([...outer, this], body);
    } finally {
      end();
    }
  }

  /**
   * Tries a statement until no other process is in its way. The handle's own busy_timeout would block
   * the event loop, and with it the very transaction of this process that may hold the lock.
   */
  async untilFree<T>(runtime: Runtime, limitMs: number, send: () => T): Promise<T> {
    const startMonoMs = runtime.monoMs();
    for (let tries = 0; ; tries++) {
      try {
        return this.withoutBlocking(send);
      } catch (error) {
        if (!isBusy(error) || runtime.monoMs() - startMonoMs >= limitMs) throw error;
      }
      await sleep(runtime, backoffMs(runtime, tries, lockPoll));
    }
  }

  private withoutBlocking<T>(send: () => T): T {
    const [row] = this.querySync('PRAGMA busy_timeout', []).rows;
    const timeoutMs = Number(Object.values(row ?? {})[0] ?? 0);
    if (timeoutMs === 0) return send();
    this.db.exec('PRAGMA busy_timeout = 0');
    try {
      return send();
    } finally {
      this.db.exec(`PRAGMA busy_timeout = ${timeoutMs}`);
    }
  }

  private prepared(text: string): Internals {
    const known = this.statements.get(text);
    if (known !== undefined) return known;
    const statement = this.db.prepare(text) as Internals;
    if (readsRows(statement, text)) {
      // Otherwise better-sqlite3 rounds integers beyond 2^53 without a word.
      if (typeof statement.safeIntegers === 'function') statement.safeIntegers(true);
      else statement.setReadBigInts?.(true);
    }
    if (this.statements.size >= statementsMax) this.statements.clear();
    this.statements.set(text, statement);
    return statement;
  }
}

/** Has an open transaction the handle of this session? Undefined where the client cannot tell. */
export function inTransaction(db: SqliteLike): boolean | undefined {
  const { inTransaction, isTransaction } = db as {
    inTransaction?: boolean;
    isTransaction?: boolean;
  };
  return inTransaction ?? isTransaction;
}

function readsRows(statement: Internals, text: string): boolean {
  if (statement.reader !== undefined) return statement.reader;
  if (typeof statement.columns === 'function') return statement.columns().length > 0;
  return /^\s*(select|with|values|pragma|explain)\b|\breturning\b/i.test(text);
}

/** A JS number would be bound as a float, and be '1.0' in a TEXT column. */
function bindable(value: SqlValue): string | bigint | number | Uint8Array | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value === 'boolean') return value ? 1n : 0n;
  if (value instanceof Date) return value.toISOString();
  return value;
}

function readable(row: Record<string, unknown>): Record<string, unknown> {
  const plain: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(row)) {
    const small = typeof value === 'bigint' && Number.isSafeInteger(Number(value));
    plain[name] = small ? Number(value) : value;
  }
  return plain;
}
