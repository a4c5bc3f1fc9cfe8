/** A TCP proxy before PostgreSQL that understands enough of the protocol to cut at COMMIT. */
import { type FaultProxy, type ProxyFilter, startProxy } from '@turngate/test-servers';

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
  private readonly faults: FaultProxy;

  private constructor(faults: FaultProxy) {
    this.faults = faults;
    this.url = faults.url;
  }

  static async start(serverUrl: string): Promise<PgProxy> {
    const filter = (connection: { cut(): void }) => proxy.watch(connection);
    const proxy = new PgProxy(await startProxy(serverUrl, { filter }));
    return proxy;
  }

  stop(): Promise<void> {
    return this.faults.stop();
  }

  private watch(connection: { cut(): void }): ProxyFilter {
    let cutting = false;
    const cut = () => {
      connection.cut();
      return 'drop' as const;
    };
    return {
      toServer: (data) => {
        if (this.muted) return 'drop';
        if (this.fate === 'pass' || !data.includes('COMMIT')) return 'pass';
        const { fate } = this;
        this.fate = 'pass';
        this.cuts++;
        if (fate === 'cut-before-commit') return cut();
        cutting = true;
        return 'pass';
      },
      toClient: (data) => {
        if (this.muted || cutting) {
          // CommandComplete of COMMIT: the server has committed. The client never hears it from us.
          return !this.muted && data.includes('COMMIT\u0000') ? cut() : 'drop';
        }
        return 'pass';
      },
    };
  }
}
