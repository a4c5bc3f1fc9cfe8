/** Taking a client out of a `pg.Pool` without a moment in which nobody listens to its errors. */
import type { PgPoolClientLike, PgPoolLike } from './pg-types.ts';

/** A checked-out client must have an error listener, or a dying backend would crash the process. */
const ignoreErrors = (): void => {};

/**
 * By callback, not by promise: when the server's "ready" and its "terminating connection" arrive
 * together, a promise would go on only after the error was raised.
 */
export function checkOut(pool: PgPoolLike): Promise<PgPoolClientLike> {
  return new Promise((resolve, reject) => {
    const take = (client: PgPoolClientLike): void => {
      client.on('error', ignoreErrors);
      resolve(client);
    };
    const answer: unknown = (pool.connect as PgConnect).call(pool, (error, client) => {
      if (client == null) reject(error);
      else take(client);
    });
    // A pool of somebody's own may know promises only.
    if (answer instanceof Promise) answer.then(take, reject);
  });
}

type PgConnect = (
  callback: (error: Error | undefined, client: PgPoolClientLike | undefined) => void,
) => unknown;

/** Gives it back; one that is thrown away may still fail once more and keeps its listener. */
export function giveBack(client: PgPoolClientLike, broken: boolean | Error | undefined): void {
  client.release(broken);
  if (broken === undefined || broken === false) client.removeListener('error', ignoreErrors);
}
