/** The session in use: the caller's client, or a new one whenever the old one has died. */
import { TurngateError } from '../../core/errors.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { ZookeeperClientLike } from './client.ts';
import { Departures } from './departures.ts';
import { Session, type SessionOptions } from './session.ts';

/** A client that is connected, or a function that makes a new one, not yet connected. */
export type ZookeeperSource = ZookeeperClientLike | (() => ZookeeperClientLike);

/** A session with the watches that live in it. */
export class Connection {
  readonly session: Session;
  readonly departures: Departures;

  constructor(session: Session) {
    this.session = session;
    this.departures = new Departures(session);
  }
}

/** How sessions behave and whom they tell. */
export type SessionsOptions = Omit<SessionOptions, 'onDeath'> & {
  readonly onDeath: (connection: Connection) => void;
};

/** Hands out the session in use. */
export class Sessions {
  private readonly runtime: Runtime;
  private readonly source: ZookeeperSource;
  private readonly options: SessionsOptions;
  private connection: Connection | undefined;
  private closed = false;

  constructor(runtime: Runtime, source: ZookeeperSource, options: SessionsOptions) {
    this.runtime = runtime;
    this.source = source;
    this.options = options;
    if (typeof source !== 'function') this.connection = this.open(source);
  }

  /** The session if there is one and it lives. */
  get live(): Connection | undefined {
    return this.connection?.session.dead === false ? this.connection : undefined;
  }

  /** A session that is established. */
  async use(): Promise<Connection> {
    const connection = this.live ?? this.renew();
    await connection.session.ready();
    return connection;
  }

  /** Ends what we opened ourselves; the server then frees everything of the session. */
  close(): void {
    this.closed = true;
    const connection = this.connection;
    connection?.session.die();
    if (typeof this.source === 'function') connection?.session.client.close();
  }

  private renew(): Connection {
    if (this.closed || typeof this.source !== 'function') {
      const why = this.closed
        ? 'the store was closed'
        : 'the session has ended; give zookeeperLocks a function that makes a client, so that it can open another one';
      throw new TurngateError('STORE_UNAVAILABLE', `ZooKeeper is not available: ${why}`);
    }
    this.connection?.session.client.close();
    const client = this.source();
    this.connection = this.open(client);
    client.connect();
    return this.connection;
  }

  private open(client: ZookeeperClientLike): Connection {
    const { options } = this;
    const connection: Connection = new Connection(
      new Session(this.runtime, client, { ...options, onDeath: () => options.onDeath(connection) }),
    );
    return connection;
  }
}
