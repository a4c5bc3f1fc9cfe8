/** Which client was passed in, told by its shape: no driver is imported. */
import { isSqlSession } from '../../contract/sql-session.ts';
import { optionError } from '../../core/option.ts';
import type { PostgresDriver, PostgresSession } from './driver.ts';
import { pgDriver, pgSession } from './drivers/pg.ts';
import type { PgClientLike, PgPoolLike } from './drivers/pg-types.ts';
import {
  type PGliteLike,
  type PGliteTxLike,
  pgliteDriver,
  pgliteSession,
} from './drivers/pglite.ts';
import {
  type PostgresJsLike,
  type PostgresJsTxLike,
  postgresJsDriver,
  postgresJsSession,
} from './drivers/postgres-js.ts';
import { readySession } from './drivers/session.ts';

/** A client Turngate can use: `pg.Pool`, postgres.js' `sql`, or a PGlite database. */
export type PostgresClient = PgPoolLike | PostgresJsLike | PGliteLike;

/** The transaction handle of a client. */
export type PostgresTxOf<Client> = Client extends PGliteLike
  ? PGliteTxLike
  : Client extends PostgresJsLike
    ? PostgresJsTxLike
    : PgClientLike;

/**
 * The driver of a client; it also adopts ready sessions.
 *
 * @throws OPTION_INVALID when it is none of them
 */
export function driverOf(client: unknown, prepare: boolean): PostgresDriver<unknown> {
  const driver = ownDriverOf(client, prepare);
  return {
    ...driver,
    adopt: (tx) => (isSqlSession(tx) ? readySession(tx) : driver.adopt(tx)),
  };
}

function ownDriverOf(client: unknown, prepare: boolean): PostgresDriver<unknown> {
  const has = (name: string): boolean =>
    typeof (client as Record<string, unknown> | undefined)?.[name] === 'function';
  if (typeof client === 'function' && has('unsafe') && has('reserve')) {
    return postgresJsDriver(client as unknown as PostgresJsLike, {
      prepare,
    }) as PostgresDriver<unknown>;
  }
  if (typeof client === 'object' && client !== null) {
    if (has('transaction') && has('query') && 'waitReady' in client) {
      return pgliteDriver(client as PGliteLike) as PostgresDriver<unknown>;
    }
    if (has('connect') && has('query') && has('end')) {
      // A single Client also has these, but checking one out of it twice would share a transaction.
      if ('totalCount' in client)
        return pgDriver(client as unknown as PgPoolLike, { prepare }) as PostgresDriver<unknown>;
    }
  }
  throw optionError('client', 'a pg.Pool, a postgres.js sql or a PGlite database', client);
}

/** The session of an open transaction handle of any of the clients, or of an ORM. */
export function sessionOf(tx: unknown): PostgresSession {
  if (isSqlSession(tx)) return readySession(tx);
  const handle = tx as Record<string, unknown> | undefined;
  if (typeof handle?.['unsafe'] === 'function') return postgresJsSession(tx as PostgresJsTxLike);
  if (typeof handle?.['query'] !== 'function') {
    throw optionError('tx', 'a transaction of pg, postgres.js or PGlite', tx);
  }
  // A pg client is an event emitter; a PGlite transaction is a plain object.
  return typeof handle['on'] === 'function'
    ? pgSession(tx as PgClientLike)
    : pgliteSession(tx as PGliteTxLike);
}
