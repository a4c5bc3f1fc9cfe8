/** A TCP proxy before PostgreSQL that understands enough of the protocol to cut at COMMIT. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** What the proxy does with the next COMMIT. */
export type CommitFate =
  | 'pass'
  /** Forwards it, waits for the server's answer, keeps that to itself and cuts. */
  | 'commit-then-cut'
  /** Cuts without forwarding it. */
  | 'cut-before-commit';

/** One proxy; `url` reaches the server through it. */
export class PgProxy {
  fate: CommitFate = 'pass';
  /** Nothing is passed on any more, in either direction, and nothing is closed. */
  muted = false;
  /** How many COMMITs met a fate. */
  cuts = 0;
  readonly url: string;
  private readonly server: Server;
  private readonly sockets: Set<Socket>;

  private constructor(server: Server, sockets: Set<Socket>, url: string) {
    this.server = server;
    this.sockets = sockets;
    this.url = url;
  }

  static async start(serverUrl: string): Promise<PgProxy> {
    const target = new URL(serverUrl);
    const sockets = new Set<Socket>();
    const server = createServer((client) => proxy.join(client, target));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = new URL(serverUrl);
    url.port = String((server.address() as AddressInfo).port);
    const proxy = new PgProxy(server, sockets, url.href);
    return proxy;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private join(client: Socket, target: URL): void {
    const upstream = connect(Number(target.port), target.hostname);
    const pair = [client, upstream];
    let cutting = false;
    const cut = (): void => {
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) {
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.sockets.delete(socket);
        cut();
      });
    }
    client.on('data', (data) => {
      if (this.muted) return;
      if (this.fate !== 'pass' && data.includes('COMMIT')) {
        const { fate } = this;
        this.fate = 'pass';
        this.cuts++;
        if (fate === 'cut-before-commit') return cut();
        cutting = true;
      }
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (this.muted) return;
      if (!cutting) return void client.write(data);
      // CommandComplete of COMMIT: the server has committed. The client will never know from us.
      if (data.includes('COMMIT\u0000')) cut();
    });
  }
}
