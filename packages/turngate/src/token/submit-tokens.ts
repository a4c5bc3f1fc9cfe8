/** Submit tokens in SQL: spent by one guarded UPDATE in the transaction of the work itself. */
import type { SqlDatabase, SqlSession } from '../contract/sql-session.ts';
import { integerOption, knownOptions } from '../core/option.ts';
import { sqlNowMs } from '../core/sql-text.ts';
import { type Runtime, systemRuntime } from '../runtime/runtime.ts';
import {
  checkPurpose,
  type GivenToken,
  type IssuedToken,
  invalidToken,
  memoryRange,
  repeatedSubmit,
  submitTokenDigest,
  type TokenPurpose,
  ttlRange,
} from './token.ts';

/** Options of {@link createSubmitTokens}. */
export interface SubmitTokensOptions<Tx> {
  readonly database: SqlDatabase<Tx>;
  /**
   * How long a token may be spent. As long as somebody may look at a form.
   *
   * @unit milliseconds, integer, 1_000 to 7 days
   * @default 1_800_000 (30 minutes)
   */
  readonly ttlMs?: number;
  /**
   * How long after its end a token is remembered: a spent one is told REPEATED_SUBMIT so long, after
   * that SUBMIT_TOKEN_INVALID. Either way nothing is done again.
   *
   * @unit milliseconds, integer, 1_000 to 3_650 days
   * @default 86_400_000 (1 day)
   */
  readonly memoryMs?: number;
  readonly runtime?: Runtime;
}

/** Issues tokens and spends them. */
export interface SubmitTokens {
  /**
   * A new token, stored outside any transaction. Not idempotent, and need not be: an unused token
   * expires.
   *
   * @throws OPTION_INVALID before any I/O
   */
  issue(purpose: TokenPurpose): Promise<IssuedToken>;
  /**
   * Spends a token in your transaction, before the work: of many at once one goes on, the others wait
   * for its commit and are refused; after its rollback the next one goes on. Rolling back leaves the
   * token as it was.
   *
   * At REPEATABLE READ a rival's commit makes PostgreSQL fail the statement with 40001: run the whole
   * transaction again, as always at that level.
   *
   * Not promised: anything about work outside the transaction.
   *
   * @throws SUBMIT_TOKEN_INVALID unknown, expired, of another subject or operation;
   *   REPEATED_SUBMIT spent before, with `firstProcessedAt`; OPTION_INVALID
   */
  consume(sql: SqlSession, given: GivenToken): Promise<void>;
  /**
   * Deletes what need not be remembered any more, in batches; returns how many went.
   *
   * @throws OPTION_INVALID batchRows 1 to 10_000 (default 1_000), batches 1 to 1_000 (default 1)
   */
  purge(limit?: { readonly batchRows?: number; readonly batches?: number }): Promise<number>;
}

/**
 * Tokens for forms of clients that cannot make keys of their own: fetched when the form is shown,
 * sent with it, spent once. A client that can keep a key over its retries is better off with an
 * idempotency key, which gets the first result again instead of a refusal.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function createSubmitTokens<Tx>(options: SubmitTokensOptions<Tx>): SubmitTokens {
  knownOptions('submit token options', options, ['database', 'ttlMs', 'memoryMs', 'runtime']);
  return new SqlTokens(
    options.database as SqlDatabase,
    integerOption('ttlMs', options.ttlMs, ttlRange),
    integerOption('memoryMs', options.memoryMs, memoryRange),
    options.runtime ?? systemRuntime,
  );
}

class SqlTokens implements SubmitTokens {
  private readonly database: SqlDatabase;
  private readonly ttlMs: number;
  private readonly memoryMs: number;
  private readonly runtime: Runtime;

  constructor(database: SqlDatabase, ttlMs: number, memoryMs: number, runtime: Runtime) {
    this.database = database;
    this.ttlMs = ttlMs;
    this.memoryMs = memoryMs;
    this.runtime = runtime;
  }

  async issue(purpose: TokenPurpose): Promise<IssuedToken> {
    const { operation, subject } = checkPurpose(purpose);
    const token = this.runtime.randomId();
    const digest = submitTokenDigest({ token, operation, subject });
    const { dialect } = this.database;
    const insert = `INSERT INTO turngate_submit_token (digest, expires_ms)
      VALUES ($1, ${sqlNowMs[dialect]} + $2)`;
    const values = [digest, this.ttlMs];
    const select = 'SELECT expires_ms FROM turngate_submit_token WHERE digest = $1';
    let stored = await this.database.query(
      dialect === 'mysql' ? insert : `${insert} RETURNING expires_ms`,
      values,
    );
    if (dialect === 'mysql') stored = await this.database.query(select, [digest]);
    return { token, expiresAt: new Date(Number(stored.rows[0]?.['expires_ms'])) };
  }

  async consume(sql: SqlSession, given: GivenToken): Promise<void> {
    const digest = submitTokenDigest(given);
    const now = sqlNowMs[sql.dialect];
    // From NULL to a number: every driver counts such a row, whether it counts found or changed ones.
    const { affectedRows } = await sql.query(
      `UPDATE turngate_submit_token SET spent_ms = ${now}
       WHERE digest = $1 AND spent_ms IS NULL AND expires_ms > ${now}`,
      [digest],
    );
    if (affectedRows === 1) return;
    // A locking read: at REPEATABLE READ a plain one shows MySQL's snapshot, from before the rival.
    const { rows } = await sql.query(
      `SELECT spent_ms FROM turngate_submit_token WHERE digest = $1
       ${sql.dialect === 'sqlite' ? '' : 'FOR UPDATE'}`,
      [digest],
    );
    const spentMs = rows[0]?.['spent_ms'];
    throw spentMs == null ? invalidToken() : repeatedSubmit(Number(spentMs), 'applied');
  }

  async purge(limit: { batchRows?: number; batches?: number } = {}): Promise<number> {
    knownOptions('purge limit', limit, ['batchRows', 'batches']);
    const one = { min: 1, max: 10_000, fallback: 1_000 };
    const batchRows = integerOption('batchRows', limit.batchRows, one);
    const batches = integerOption('batches', limit.batches, { min: 1, max: 1_000, fallback: 1 });
    const { dialect } = this.database;
    const old = `expires_ms < ${sqlNowMs[dialect]} - $1`;
    const text =
      dialect === 'mysql'
        ? `DELETE FROM turngate_submit_token WHERE ${old} LIMIT ${batchRows}`
        : `DELETE FROM turngate_submit_token WHERE digest IN
            (SELECT digest FROM turngate_submit_token WHERE ${old} LIMIT ${batchRows})`;
    let purged = 0;
    for (let batch = 0; batch < batches; batch++) {
      const { affectedRows } = await this.database.query(text, [this.memoryMs]);
      purged += affectedRows;
      if (affectedRows < batchRows) break;
    }
    return purged;
  }
}
