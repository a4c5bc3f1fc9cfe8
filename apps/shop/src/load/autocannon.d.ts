/** The part of autocannon that the load uses; the package has no types of its own. */
declare module 'autocannon' {
  interface Client {
    on(event: 'body', listener: (body: Buffer | string) => void): void;
  }
  interface Request {
    readonly method: string;
    setupRequest(request: object): object;
  }
  interface Options {
    readonly url: string;
    readonly connections: number;
    readonly duration: number;
    readonly overallRate: number;
    readonly timeout: number;
    readonly requests: readonly Request[];
    setupClient(client: Client): void;
  }
  interface Result {
    readonly errors: number;
    readonly timeouts: number;
    readonly duration: number;
    readonly requests: { readonly sent: number; readonly total: number };
    readonly latency: Readonly<Record<'p50' | 'p90' | 'p99' | 'max', number>>;
  }
  function autocannon(options: Options): Promise<Result>;

  export = autocannon;
}
