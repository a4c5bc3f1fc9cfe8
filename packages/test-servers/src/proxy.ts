import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** What a filter says about bytes on their way. */
export type ProxyVerdict = 'pass' | 'drop';

/** One connection through the proxy, for filters that know its protocol. */
export interface ProxyConnection {
  /** Closes both halves at once, without the bytes that are still on their way. */
  cut(): void;
}

/** Looks at what passes; made anew for each connection, so it can remember. */
export interface ProxyFilter {
  toServer?(data: Buffer): ProxyVerdict;
  toClient?(data: Buffer): ProxyVerdict;
}

/** Options of {@link startProxy}. */
export interface ProxyOptions {
  readonly filter?: (connection: ProxyConnection) => ProxyFilter;
}

type Mode = 'pass' | 'blackhole' | 'hold';

/**
 * Starts a proxy on a port of its own in front of a server.
 *
 * @param target url of the server, with a port
 */
export async function startProxy(target: string, options: ProxyOptions = {}): Promise<FaultProxy> {
  const { hostname, port } = new URL(target);
  const upstream = { host: hostname, port: Number(port) };
  // Half-open, so that the end of one direction is passed on like its bytes, in order.
  const server = createServer({ allowHalfOpen: true }, (client) =>
    proxy.join(client, connect({ ...upstream, allowHalfOpen: true })),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = new FaultProxy(server, target, options);
  return proxy;
}

/** A TCP proxy that misbehaves when told, for all connections, until `heal`. */
export class FaultProxy implements AsyncDisposable {
  readonly host: string = '127.0.0.1';
  readonly port: number;
  /** The url of the server, through the proxy. */
  readonly url: string;
  /** Bytes arrive this much later, in each direction, in order. */
  delayMs = 0;
  private mode: Mode = 'pass';
  private refusing = false;
  private released: Promise<void> = Promise.resolve();
  private release: () => void = () => {};
  private readonly server: Server;
  private readonly options: ProxyOptions;
  private readonly pairs = new Set<Pair>();

  constructor(server: Server, target: string, options: ProxyOptions) {
    this.server = server;
    this.options = options;
    this.port = (server.address() as AddressInfo).port;
    const url = new URL(target);
    url.hostname = this.host;
    url.port = String(this.port);
    this.url = url.href;
  }

  /** How many connections are open. */
  get connections(): number {
    return this.pairs.size;
  }

  /** Closes what is open now. New connections are welcome. */
  cut(): void {
    for (const pair of this.pairs) pair.cut();
  }

  /** Closes what is open and, until `heal`, what comes. */
  refuse(): void {
    this.refusing = true;
    this.cut();
  }

  /**
   * Drops all bytes, and nothing is closed. `heal` cuts the connections that have lost some: what
   * follows a hole could not be understood.
   */
  blackhole(): void {
    this.mode = 'blackhole';
  }

  /** Keeps all bytes until `heal`, which delivers them: the late write of a partitioned client. */
  hold(): void {
    if (this.mode === 'hold') return;
    this.mode = 'hold';
    this.released = new Promise((resolve) => {
      this.release = resolve;
    });
  }

  /** Ends every fault. */
  heal(): void {
    this.mode = 'pass';
    this.refusing = false;
    this.delayMs = 0;
    this.release();
    for (const pair of this.pairs) {
      if (pair.hasLost) pair.cut();
    }
  }

  async stop(): Promise<void> {
    this.release();
    this.cut();
    if (this.server.listening) await new Promise((resolve) => this.server.close(resolve));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** @internal */
  join(client: Socket, upstream: Socket): void {
    const pair = new Pair(client, upstream);
    this.pairs.add(pair);
    const filter = this.options.filter?.(pair) ?? {};
    this.pipe(pair, client, upstream, (data) => filter.toServer?.(data));
    this.pipe(pair, upstream, client, (data) => filter.toClient?.(data));
    for (const socket of [client, upstream]) {
      socket.on('close', () => {
        if (pair.isClosed) this.pairs.delete(pair);
      });
    }
    if (this.refusing) pair.cut();
  }

  private pipe(
    pair: Pair,
    from: Socket,
    to: Socket,
    judge: (data: Buffer) => ProxyVerdict | undefined,
  ): void {
    // One step after the other, so that order is kept also when the delay changes.
    let last: Promise<void> = Promise.resolve();
    const later = (act: () => void): void => {
      if (this.mode === 'blackhole') {
        pair.hasLost = true;
        return;
      }
      const dueMonoMs = performance.now() + this.delayMs;
      const { released } = this;
      last = last.then(async () => {
        await released;
        const waitMs = dueMonoMs - performance.now();
        if (this.delayMs > 0 && waitMs > 0) await pair.pause(waitMs);
        if (!to.destroyed) act();
      });
    };
    from.on('data', (data: Buffer) => {
      if (judge(data) !== 'drop') later(() => to.write(data));
    });
    from.on('end', () => later(() => to.end()));
    // What was sent before may still be on its way, and it arrives.
    from.on('error', () => later(() => to.destroySoon()));
  }
}

class Pair implements ProxyConnection {
  hasLost = false;
  private readonly sockets: readonly Socket[];
  private readonly timers = new Set<() => void>();

  constructor(client: Socket, upstream: Socket) {
    this.sockets = [client, upstream];
  }

  get isClosed(): boolean {
    return this.sockets.every((socket) => socket.destroyed);
  }

  cut(): void {
    for (const socket of this.sockets) socket.destroy();
    for (const wake of this.timers) wake();
  }

  /** A wait that ends early when the connection is cut. */
  pause(durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => wake(), durationMs);
      const wake = (): void => {
        clearTimeout(timer);
        this.timers.delete(wake);
        resolve();
      };
      this.timers.add(wake);
    });
  }
}
