/** A provider that honours its keys, in the process that is not killed. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Effects by what was asked for (`/charge/k1`) and by the key it came with. */
export class Provider {
  readonly effects = new Map<string, Map<string, string>>();
  private readonly server: Server;
  private made = 0;

  constructor() {
    this.server = createServer((request, response) => {
      const key = String(request.headers['idempotency-key']);
      const what = String(request.url);
      const known = this.effects.get(what) ?? new Map<string, string>();
      this.effects.set(what, known);
      if (!known.has(key)) known.set(key, `p${++this.made}`);
      response.end(known.get(key));
    });
  }

  /** Gives the address. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}
