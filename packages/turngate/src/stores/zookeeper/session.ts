/**
 * One ZooKeeper session: calls that end, when the server was last heard, and its death. The client
 * itself has no read timeout, keeps commands for a later connection, and never answers what was
 * queued when its session died, so all of that is done here.
 */
import { TurngateError } from '../../core/errors.ts';
import type { Runtime, Timer } from '../../runtime/runtime.ts';
import {
  createMode,
  int64,
  type ZookeeperClientLike,
  type ZookeeperErrorLike,
  type ZookeeperStatLike,
  zkCode,
} from './client.ts';

type State = { getName(): string };
type Reply<T> = (error: ZookeeperErrorLike | null | undefined, value?: T) => void;

const removeRetryMs = 1_000;
const connectLimitMs = 2_000;

/** The answer of the server is an error with this number. */
export function isZk(error: unknown, code: number): boolean {
  return (error as ZookeeperErrorLike | undefined)?.code === code;
}

/** How a session behaves and whom it tells. */
export interface SessionOptions {
  readonly limitMs: number;
  readonly acls: unknown;
  readonly onDeath: () => void;
  readonly onReconnect: () => void;
}

/** A client and what is known of its session. */
export class Session {
  readonly client: ZookeeperClientLike;
  dead = false;
  /** When the newest answered command was sent: the server has heard us no earlier than that. */
  lastHeardMonoMs: number;
  private readonly runtime: Runtime;
  private readonly options: SessionOptions;
  /** Who waits for the session to be established. */
  private readonly connecting = new Set<() => void>();
  private wasConnected: boolean;
  private reconnecting: Timer | undefined;
  private readonly cuts = new Set<(error: Error) => void>();
  private readonly doomed = new Set<string>();
  private readonly onState = (state: State): void => this.changed(state.getName());

  constructor(runtime: Runtime, client: ZookeeperClientLike, options: SessionOptions) {
    this.runtime = runtime;
    this.client = client;
    this.options = options;
    this.dead = client.getState().getName() === 'EXPIRED';
    this.wasConnected = this.connected;
    this.lastHeardMonoMs = runtime.monoMs();
    client.on('state', this.onState);
  }

  get id(): bigint {
    return int64(this.client.getSessionId());
  }

  get timeoutMs(): number {
    return this.client.getSessionTimeout();
  }

  get connected(): boolean {
    return !this.dead && this.client.getState().getName() === 'SYNC_CONNECTED';
  }

  /** Waits until the session is established, no longer than any command may take. */
  async ready(): Promise<void> {
    if (this.connected) return;
    await this.limited<void>((resolve) => {
      this.connecting.add(resolve);
      return () => this.connecting.delete(resolve);
    });
  }

  /** Creates an ephemeral sequential node; gives its whole path. */
  createPlace(prefix: string): Promise<string> {
    return this.call((reply) =>
      this.client.create(prefix, this.options.acls, createMode.ephemeralSequential, reply),
    );
  }

  /** Creates a directory and those above it; one that is there already is fine. */
  async createDirectory(path: string): Promise<void> {
    try {
      await this.call((reply) =>
        this.client.create(path, this.options.acls, createMode.persistent, reply),
      );
    } catch (error) {
      if (isZk(error, zkCode.nodeExists)) return;
      const parent = path.slice(0, path.lastIndexOf('/'));
      if (!isZk(error, zkCode.noNode) || parent === '') throw error;
      await this.createDirectory(parent);
      await this.createDirectory(path);
    }
  }

  /** Names of the children; none where there is no such directory. */
  async children(path: string): Promise<readonly string[]> {
    try {
      return await this.call((reply) => this.client.getChildren(path, reply));
    } catch (error) {
      if (isZk(error, zkCode.noNode)) return [];
      throw error;
    }
  }

  exists(path: string): Promise<ZookeeperStatLike | null> {
    return this.call((reply) => this.client.exists(path, reply));
  }

  /** Removes a node; false when it was not there. */
  async remove(path: string): Promise<boolean> {
    try {
      await this.call<void>((reply) => this.client.remove(path, reply));
      return true;
    } catch (error) {
      if (isZk(error, zkCode.noNode)) return false;
      throw error;
    }
  }

  /**
   * Calls `onGone` once when the node goes. Read with getData, which leaves no watch behind where
   * there is no node. False when it is gone already.
   */
  async watchGone(path: string, onGone: () => void): Promise<boolean> {
    try {
      await this.call<unknown>((reply) => this.client.getData(path, onGone, reply));
      return true;
    } catch (error) {
      if (isZk(error, zkCode.noNode)) return false;
      throw error;
    }
  }

  /** Removes a node without anybody waiting: again and again until it or the session is gone. */
  removeSurely(path: string, onGone: () => void): void {
    if (this.dead || this.doomed.has(path)) return;
    this.doomed.add(path);
    const attempt = (): void => {
      if (this.dead) return;
      this.remove(path).then(
        () => {
          this.doomed.delete(path);
          onGone();
        },
        () => void this.runtime.timer(removeRetryMs, false, attempt),
      );
    };
    attempt();
  }

  /** Ends what waits for an answer and tells the owner. Safe to repeat. */
  die(): void {
    if (this.dead) return;
    this.dead = true;
    this.client.removeListener('state', this.onState);
    this.doomed.clear();
    this.reconnecting?.cancel();
    for (const cut of this.cuts) cut(this.unavailable('the session has ended'));
    this.cuts.clear();
    this.options.onDeath();
  }

  /** Commands only: an error answer also proves that the server is there. */
  private call<T>(send: (reply: Reply<T>) => void): Promise<T> {
    const sentMonoMs = this.runtime.monoMs();
    const ask = (resolve: (value: T) => void, reject: (error: unknown) => void): void =>
      send((error, value) => {
        const lost = isZk(error, zkCode.connectionLoss) || isZk(error, zkCode.sessionExpired);
        if (!lost && sentMonoMs > this.lastHeardMonoMs) this.lastHeardMonoMs = sentMonoMs;
        if (!error) resolve(value as T);
        else if (lost) reject(this.unavailable('the connection was lost', error));
        else reject(error);
        // The session is dead, and the client was not told: it hears so when it connects again.
        if (isZk(error, zkCode.sessionExpired)) this.reconnect();
      });
    return this.limited<T>(ask, () => {
      // A connection can live on when its session has ended, and the server answers nothing on it.
      if (this.lastHeardMonoMs < sentMonoMs) this.reconnect();
    });
  }

  /** What was not answered on this connection ends now; the next one tells whether we live. */
  private reconnect(): void {
    if (!this.dead) this.client.connectionManager?.socket?.destroy();
  }

  private limited<T>(
    start: (resolve: (value: T) => void, reject: (error: unknown) => void) => unknown,
    onLate?: () => void,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.dead) return reject(this.unavailable('the session has ended'));
      let end: unknown;
      const settle =
        <V>(how: (value: V) => void) =>
        (value: V): void => {
          timer.cancel();
          this.cuts.delete(cut);
          if (typeof end === 'function') end();
          how(value);
        };
      const cut = settle(reject);
      const { limitMs } = this.options;
      const timer = this.runtime.timer(limitMs, false, () => {
        cut(this.unavailable(`no answer within ${limitMs} ms`));
        onLate?.();
      });
      this.cuts.add(cut);
      end = start(settle(resolve), cut);
    });
  }

  private changed(state: string): void {
    if (state === 'EXPIRED') this.die();
    if (state === 'DISCONNECTED') this.reconnectSoon();
    if (state !== 'SYNC_CONNECTED') return;
    if (this.wasConnected) this.options.onReconnect();
    this.wasConnected = true;
    const waiting = [...this.connecting];
    this.connecting.clear();
    for (const resolve of waiting) resolve();
  }

  /**
   * A server that is just starting can accept a connection and never answer on it, and the client
   * waits for ever: such a connection is ended, and the client makes another one.
   */
  private reconnectSoon(): void {
    this.reconnecting?.cancel();
    this.reconnecting = this.runtime.timer(connectLimitMs, false, () => {
      if (this.dead || this.connected) return;
      this.reconnect();
      this.reconnectSoon();
    });
  }

  private unavailable(what: string, cause?: unknown): TurngateError {
    const message = `ZooKeeper is not available: ${what}`;
    return new TurngateError('STORE_UNAVAILABLE', message, { cause, retryAfterMs: 1_000 });
  }
}
