/** What every experiment runs on: a store with a place for effects, and routes without a framework. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { createGate, type Gate } from 'turngate';
import type { HttpOptions } from 'turngate/express';
import { memory } from 'turngate/memory';
import { migrate, postgres } from 'turngate/postgres';

/** What a handler of an experiment answers, before a framework sends it in its own way. */
export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array | null;
  /** Instead of a body: chunks, and what is waited for after the first of them. */
  readonly stream?: { readonly chunks: readonly string[]; readonly after?: () => Promise<void> };
}

/** A handler's view of one call. */
export interface Call {
  /** The body as the framework gave it to the handler. */
  readonly text: string;
  /** Writes one line with the transaction; throws when there is none. */
  effect(line: string): Promise<void>;
  readonly tx: unknown;
  readonly native: unknown;
}

/** One route of an experiment's application. */
export interface Route {
  readonly path: string;
  readonly method?: 'get' | 'post' | 'put' | 'options';
  /** Without `scope`: the framework's glue takes it from the header `x-user`. */
  readonly options?: Omit<HttpOptions<never>, 'scope'>;
  /** False: a route without the layer. */
  readonly protect?: boolean;
  handle(call: Call): Promise<Reply> | Reply;
}

/** The application under test. */
export interface App {
  readonly url: string;
  close(): Promise<void>;
}

/** How one framework runs the routes. */
export interface Framework {
  readonly name: string;
  /** Runs only the experiments about requests. */
  readonly only?: 'requests';
  /** Laws it cannot show, with the reason. */
  readonly unable?: Readonly<Record<string, string>>;
  start(world: World, routes: readonly Route[]): Promise<App>;
}

// biome-ignore lint/suspicious/noExplicitAny: one world type over stores with different transactions.
type AnyGate = Gate<any>;

/** A store and its effects. */
export interface World {
  readonly name: string;
  readonly gate: AnyGate;
  /** There are no transactions, and effects are elsewhere. */
  readonly loose?: true;
  write(tx: unknown, line: string): Promise<void>;
  lines(prefix: string): Promise<string[]>;
  /** Makes the database undo the handler's transaction, for a failed statement or a deadlock; rejects. */
  spoil?(tx: unknown, how: 'undone' | 'deadlock'): Promise<unknown>;
  /** How many records there are; undefined where the store does not tell. */
  records(): Promise<number | undefined>;
  /** Another gate on the same store, as in another process; undefined where there is none. */
  sibling?(): World;
  close(): Promise<void>;
}

/** The call a framework's glue hands to a route. */
export function callOf(world: World, tx: unknown, text: string, native: unknown): Call {
  return {
    text,
    tx,
    native,
    async effect(line) {
      if (tx === undefined && world.loose !== true) throw new Error('no transaction');
      await world.write(tx, line);
    },
  };
}

export async function memoryWorld(): Promise<World> {
  const effects: string[] = [];
  const gate = createGate({ records: memory() });
  return {
    name: 'memory',
    gate,
    write: async (tx, line) =>
      void (tx as { write(apply: () => void): void }).write(() => effects.push(line)),
    lines: async (prefix) => effects.filter((line) => line.startsWith(prefix)).sort(),
    records: async () => undefined,
    close: () => gate.close(),
  };
}

export async function postgresWorld(serverUrl: string): Promise<World> {
  const name = `turngate_http_${randomBytes(6).toString('hex')}`;
  await asAdmin(serverUrl, `CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 10 });
  pool.on('error', () => {});
  await migrate(pool);
  await pool.query('CREATE TABLE effect (line text NOT NULL)');
  // Refuses at COMMIT only: the answer must not have left by then.
  await pool.query(`CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN IF NEW.line LIKE '%late-refusal%' THEN RAISE 'refused at commit'; END IF; RETURN NEW; END $$`);
  await pool.query(`CREATE CONSTRAINT TRIGGER late AFTER INSERT ON effect
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()`);
  const drop = (): Promise<void> => asAdmin(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`);
  return postgresGate(url.href, pool, drop);
}

const spoiling = {
  undone: 'SELECT 1/0',
  deadlock: "DO $$ BEGIN RAISE 'deadlock' USING ERRCODE = '40P01'; END $$",
};

function postgresGate(url: string, pool: pg.Pool, drop: () => Promise<void>): World {
  const gate = createGate({ records: postgres(pool) });
  return {
    name: 'postgres',
    gate,
    async write(tx, line) {
      await (tx as pg.ClientBase).query('INSERT INTO effect (line) VALUES ($1)', [line]);
    },
    spoil: (tx, how) => (tx as pg.ClientBase).query(spoiling[how]),
    async lines(prefix) {
      const text = 'SELECT line FROM effect WHERE left(line, length($1)) = $1 ORDER BY 1';
      const { rows } = await pool.query<{ line: string }>(text, [prefix]);
      return rows.map(({ line }) => line);
    },
    async records() {
      const { rows } = await pool.query<{ n: number }>(
        'SELECT count(*)::int AS n FROM turngate_record',
      );
      return rows[0]?.n;
    },
    sibling() {
      const other = new pg.Pool({ connectionString: url, max: 5 });
      other.on('error', () => {});
      return postgresGate(url, other, async () => {});
    },
    async close() {
      await gate.close();
      await pool.end();
      await drop();
    },
  };
}

async function asAdmin(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** The body of a reply as text chunks. */
export async function* chunksOf({
  chunks,
  after,
}: NonNullable<Reply['stream']>): AsyncGenerator<Buffer, void> {
  const [first = '', ...others] = chunks;
  yield Buffer.from(first);
  await after?.();
  for (const chunk of others) {
    await new Promise((resolve) => setImmediate(resolve));
    yield Buffer.from(chunk);
  }
}

export function bodyOf({ body }: Reply): Buffer | undefined {
  return body === undefined || body === null ? undefined : Buffer.from(body);
}
