/** One connection for oneself, from each client that can give one. */
import { optionError } from '../../core/option.ts';
import { Turns } from '../../runtime/turns.ts';
import type { Row } from './driver.ts';
import { checkOut, giveBack } from './drivers/pg-checkout.ts';
import type { PgClientLike, PgPoolLike } from './drivers/pg-types.ts';
import type { PostgresJsLike } from './drivers/postgres-js.ts';

/** A client that {@link postgresSessionLocks} can use: a `pg.Pool` or postgres.js' `sql`. */
export type PostgresSessionClient = PgPoolLike | PostgresJsLike;

/** A connection that nobody else uses. */
export interface OwnConnection {
  /** One statement; every column is text. */
  query(text: string, values: readonly string[]): Promise<readonly Row[]>;
  /** Calls back when the connection has ended, where the client tells. */
  onEnd(listener: (error?: unknown) => void): void;
  /** Gives it back for others, or throws it away. Never rejects. */
  giveBack(destroy: boolean): Promise<void>;
}

/** Where connections come from. */
export interface ConnectionSource {
  open(): Promise<OwnConnection>;
}

type PgConnection = PgClientLike & {
  release(destroy?: boolean): void;
  on(event: string, listener: (error?: unknown) => void): unknown;
  removeListener(event: string, listener: (error?: unknown) => void): unknown;
};

/** @throws OPTION_INVALID when the client cannot give a connection, or has none to spare */
export function connectionsOf(client: unknown): ConnectionSource {
  const given = client as Record<string, unknown> | undefined;
  const has = (name: string): boolean => typeof given?.[name] === 'function';
  const isPostgresJs = typeof client === 'function' && has('unsafe') && has('reserve');
  const isPool = typeof client === 'object' && client !== null && 'totalCount' in client;
  if (!isPostgresJs && !(isPool && has('connect'))) {
    throw optionError('client', 'a pg.Pool or a postgres.js sql (PGlite has one session)', client);
  }
  const { max } = (given?.['options'] ?? {}) as { max?: unknown };
  if (typeof max === 'number' && max < 2) {
    // The lock would keep the only connection, and work under it would wait for ever.
    throw optionError('client', 'a pool of at least 2 connections: one is kept for the locks', max);
  }
  return isPostgresJs
    ? fromPostgresJs(client as unknown as PostgresJsLike)
    : fromPg(client as unknown as PgPoolLike);
}

function fromPg(pool: PgPoolLike): ConnectionSource {
  return {
    async open() {
      const taken = await checkOut(pool);
      const client = taken as unknown as PgConnection;
      let onEnd: (error?: unknown) => void = () => {};
      let ended = false;
      const turns = new Turns();
      const end = (error?: unknown): void => {
        ended = true;
        onEnd(error);
      };
      client.on('error', end);
      client.on('end', end);
      return {
        query(text, values) {
          // One at a time: pg gives up queueing statements of its own in version 9.
          return turns.take('', async () => {
            const { rows } = await client.query({ text, values, rowMode: 'array' });
            return rows as Row[];
          });
        },
        onEnd(listener) {
          onEnd = listener;
          if (ended) listener();
        },
        async giveBack(destroy) {
          onEnd = () => {};
          giveBack(taken, destroy || ended);
          client.removeListener('error', end);
          client.removeListener('end', end);
        },
      };
    },
  };
}

/** postgres.js tells the end of a connection only by the next statement that fails. */
function fromPostgresJs(sql: PostgresJsLike): ConnectionSource {
  return {
    async open() {
      const reserved = await sql.reserve();
      return {
        query: async (text, values) => [
          ...(await reserved.unsafe(text, [...values], { prepare: false }).values()),
        ],
        onEnd() {},
        async giveBack(destroy) {
          // There is no way to throw one away: free what it holds. Queued behind whatever hangs.
          if (destroy) await reserved.unsafe('SELECT pg_advisory_unlock_all()').catch(() => {});
          reserved.release();
        },
      };
    },
  };
}
