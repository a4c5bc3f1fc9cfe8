/** A pooler in front of two backends, as its clients see it. */
import pg from 'pg';

interface Pinned {
  backend: pg.Client | undefined;
}

/**
 * `mode: 'transaction'`: a statement goes to the backend that was used last, a transaction keeps it.
 * `mode: 'session'`: every client has a backend of its own.
 */
export class SwappingPool {
  mode: 'transaction' | 'session' = 'transaction';
  readonly totalCount = 0;
  readonly options: { readonly max: number } = { max: 10 };
  private readonly backends: readonly pg.Client[];
  private readonly idle: pg.Client[];
  private clients = 0;

  private constructor(backends: readonly pg.Client[]) {
    this.backends = backends;
    this.idle = [...backends];
  }

  static async start(url: string): Promise<SwappingPool> {
    const backends = [1, 2].map(() => new pg.Client({ connectionString: url }));
    for (const backend of backends) await backend.connect();
    return new SwappingPool(backends);
  }

  async connect(): Promise<unknown> {
    const own = this.backends[this.clients++ % 2] as pg.Client;
    const pinned: Pinned = { backend: undefined };
    return {
      query: (config: pg.QueryConfig | string) =>
        this.mode === 'session' ? own.query(config) : this.send(pinned, config),
      on() {},
      removeListener() {},
      release() {},
    };
  }

  // biome-ignore lint/suspicious/noExplicitAny: shape of pg.Pool.
  query(config: any): any {
    return this.send({ backend: undefined }, config);
  }

  async end(): Promise<void> {
    for (const backend of this.backends) await backend.end();
  }

  private async send(pinned: Pinned, config: pg.QueryConfig | string): Promise<unknown> {
    const text = typeof config === 'string' ? config : config.text;
    const backend = pinned.backend ?? this.idle.pop() ?? (this.backends[0] as pg.Client);
    if (text.startsWith('BEGIN')) pinned.backend = backend;
    if (text.startsWith('COMMIT')) pinned.backend = undefined;
    try {
      return await backend.query(config);
    } finally {
      if (pinned.backend === undefined && !this.idle.includes(backend)) this.idle.push(backend);
    }
  }
}
