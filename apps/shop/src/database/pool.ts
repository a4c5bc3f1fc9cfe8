/** The connection pool, bounded in connections and in time: nothing may hang on a silent server. */
import pg from 'pg';

/** Opens the pool. Its errors on idle connections are reported, not thrown. */
export function openPool(url: string, onIdleError: (error: Error) => void): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: 12,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 10_000,
    query_timeout: 12_000,
    idle_in_transaction_session_timeout: 30_000,
    application_name: 'turngate-shop',
  });
  pool.on('error', onIdleError);
  return pool;
}
