/**
 * The one session that holds all advisory locks of a store: opened when needed, given back when idle,
 * refused when statements do not stay on one backend, dead when it does not answer.
 */
import { isTurngateError, TurngateError } from '../../core/errors.ts';
import { Deadlines } from '../../runtime/deadlines.ts';
import type { Runtime, Timer } from '../../runtime/runtime.ts';
import { sqlState } from '../sql/sql-error.ts';
import type { Row } from './driver.ts';
import { ourStoreError } from './postgres-error.ts';
import type { ConnectionSource, OwnConnection } from './session-clients.ts';

const lingerMs = 1_000; // A pool that is being ended waits at most this long for an idle store.
const backendPid = 'SELECT pg_backend_pid()::text';

/** An established session on a known backend. */
export class AdvisorySession {
  readonly pid: string;
  dead = false;
  private readonly connection: OwnConnection;
  private readonly deadlines: Deadlines;
  private readonly limitMs: number;
  private readonly onDeath: (session: AdvisorySession) => void;

  constructor(
    connection: OwnConnection,
    pid: string,
    options: {
      deadlines: Deadlines;
      limitMs: number;
      onDeath: (session: AdvisorySession) => void;
    },
  ) {
    this.connection = connection;
    this.pid = pid;
    this.deadlines = options.deadlines;
    this.limitMs = options.limitMs;
    this.onDeath = options.onDeath;
    connection.onEnd(() => void this.die());
  }

  /**
   * One statement whose last column is the backend it ran on; throws OPTION_INVALID when that is not
   * ours. Without an answer the session is given up with all its locks: nobody could tell what it
   * still holds.
   */
  async query(text: string, values: readonly string[]): Promise<Row | undefined> {
    if (this.dead) throw ended();
    let row: Row | undefined;
    try {
      const call = this.connection.query(text, values);
      [row] = await this.deadlines.limit(call, () => ended(`no answer within ${this.limitMs} ms`));
    } catch (error) {
      // An error with a SQLSTATE of its own is an answer; anything else is a broken connection.
      const state = sqlState(error);
      if (state === undefined || /^(08|57P)/.test(state)) void this.die();
      throw isTurngateError(error) ? error : ourStoreError(error);
    }
    if (row !== undefined && row.at(-1) !== this.pid) throw pooled();
    return row;
  }

  /** Gives the connection back while no lock is held. */
  async leave(): Promise<void> {
    if (this.dead) return;
    this.dead = true;
    await this.connection.giveBack(false);
  }

  /** Throws the connection away with all its locks. */
  async die(): Promise<void> {
    if (this.dead) return;
    this.dead = true;
    const gone = this.connection.giveBack(true);
    this.onDeath(this);
    await gone;
  }
}

/** Opens, keeps and gives back the session. */
export class SessionKeeper {
  private readonly runtime: Runtime;
  private readonly source: ConnectionSource;
  private readonly options: {
    readonly limitMs: number;
    readonly busy: () => boolean;
    readonly onDeath: (session: AdvisorySession) => void;
  };
  private readonly deadlines: Deadlines;
  private session: AdvisorySession | undefined;
  private opening: Promise<AdvisorySession> | undefined;
  private probed = false;
  private users = 0;
  private idle: Timer | undefined;

  constructor(
    runtime: Runtime,
    source: ConnectionSource,
    options: {
      limitMs: number;
      busy: () => boolean;
      onDeath: (session: AdvisorySession) => void;
    },
  ) {
    this.runtime = runtime;
    this.source = source;
    this.options = options;
    this.deadlines = new Deadlines(runtime, options.limitMs);
  }

  /** Runs `work` with the session, which is not given back meanwhile. */
  async with<T>(work: (session: AdvisorySession) => Promise<T>): Promise<T> {
    return await this.pinned(async () => await work(await this.use()));
  }

  /** Like {@link with}, for a session that is in use already. */
  async pinned<T>(work: () => Promise<T>): Promise<T> {
    this.users++;
    this.idle?.cancel();
    try {
      return await work();
    } finally {
      this.users--;
      this.linger();
    }
  }

  /** Gives the connection back at once; locks still held are lost. */
  async close(): Promise<void> {
    this.idle?.cancel();
    if (this.options.busy()) await this.session?.die();
    else await this.session?.leave();
  }

  private linger(): void {
    this.idle?.cancel();
    if (this.users > 0 || this.options.busy()) return;
    this.idle = this.runtime.timer(lingerMs, false, () => {
      if (this.users === 0 && !this.options.busy()) void this.session?.leave();
    });
  }

  private async use(): Promise<AdvisorySession> {
    if (this.session?.dead === false) return this.session;
    this.opening ??= this.open().finally(() => {
      this.opening = undefined;
    });
    return await this.opening;
  }

  private async open(): Promise<AdvisorySession> {
    const connection = await this.connect();
    try {
      const pid = await this.pidOf(connection);
      if (!this.probed) await this.probe(connection, pid);
      this.probed = true;
      const { limitMs, onDeath } = this.options;
      const { deadlines } = this;
      this.session = new AdvisorySession(connection, pid, { deadlines, limitMs, onDeath });
      return this.session;
    } catch (error) {
      void connection.giveBack(true);
      throw isTurngateError(error) ? error : ourStoreError(error);
    }
  }

  private async connect(): Promise<OwnConnection> {
    const opening = this.source.open();
    const { limitMs } = this.options;
    try {
      return await this.deadlines.limit(opening, () => ended(`no connection within ${limitMs} ms`));
    } catch (error) {
      // One that comes too late goes straight back.
      opening.then(
        (late) => void late.giveBack(false),
        () => {},
      );
      throw isTurngateError(error) ? error : ourStoreError(error);
    }
  }

  /**
   * Behind a pooler in transaction mode, a transaction on a second connection gets the very backend
   * that ours just used, or ours moves to another one meanwhile.
   */
  private async probe(connection: OwnConnection, pid: string): Promise<void> {
    const other = await this.connect();
    try {
      await this.limited(other.query('BEGIN', []));
      const otherPid = await this.pidOf(other);
      const again = await this.pidOf(connection);
      await this.limited(other.query('COMMIT', []));
      if (otherPid === pid || again !== pid) throw pooled();
      void other.giveBack(false);
    } catch (error) {
      void other.giveBack(true);
      throw error;
    }
  }

  private async pidOf(connection: OwnConnection): Promise<string> {
    const [row] = await this.limited(connection.query(backendPid, []));
    return row?.[0] as string;
  }

  private limited<T>(call: Promise<T>): Promise<T> {
    const { limitMs } = this.options;
    return this.deadlines.limit(call, () => ended(`no answer within ${limitMs} ms`));
  }
}

function ended(why = 'the session of the locks has ended'): TurngateError {
  const message = `PostgreSQL is not available: ${why}`;
  return new TurngateError('STORE_UNAVAILABLE', message, { retryAfterMs: 1_000 });
}

function pooled(): TurngateError {
  return new TurngateError(
    'OPTION_INVALID',
    'postgresSessionLocks: two statements of one connection ran on different backends, as behind a ' +
      'pooler in transaction mode. A session lock would be left behind there: connect directly, or ' +
      'use postgresLocks (table mode), which works behind any pooler',
  );
}
