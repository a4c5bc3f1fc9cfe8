/** Vouchers: one unique insert as the licence for everything that follows it. */
import { ClaimTable } from '../claim/claim-table.ts';
import type { SqlDatabase, SqlSession } from '../contract/sql-session.ts';
import { integerOption, knownOptions } from '../core/option.ts';
import { checkKey, checkOperationName } from '../core/record-id.ts';
import { sqlNowMs } from '../core/sql-text.ts';
import { attemptIds, systemRuntime } from '../runtime/runtime.ts';

/** What a voucher is for. */
export interface Voucher {
  /** The side action, like `points.order-paid`. */
  readonly name: string;
  /** What it is done for, once: an order number. The same checks as for an idempotency key. */
  readonly key: string;
}

const nextToken = attemptIds(systemRuntime);
const vouchers = new ClaimTable({
  table: 'turngate_voucher',
  key: ['name', 'voucher_key'],
  fresh: { created_ms: '{now}' },
});

/**
 * True for the first who asks, in the caller's transaction; everybody else, now and later, gets false
 * and leaves the side action out. While the first is uncommitted the others wait; after its rollback
 * the next one is the first.
 *
 * For side actions of an UPDATE that several requests may reach: points, a notification put into the
 * outbox. An operation of its own has its record and needs no voucher. Run the transaction at READ
 * COMMITTED; at REPEATABLE READ PostgreSQL answers a lost race with 40001, and the whole transaction is
 * to be run again.
 *
 * Not promised: anything about side actions outside the transaction.
 *
 * @throws OPTION_INVALID, IDEMPOTENCY_KEY_MISSING, IDEMPOTENCY_KEY_INVALID before any I/O
 */
async function voucher(sql: SqlSession, { name, key }: Voucher): Promise<boolean> {
  checkOperationName(name);
  checkKey(key);
  const claim = { key: [name, bytesOf(sql, key)], values: [], token: nextToken() };
  return (await vouchers.claim(sql, claim)).ours;
}

/** MySQL keeps keys as bytes: no collation may take two for one. */
function bytesOf(sql: SqlSession, key: string): string | Uint8Array {
  return sql.dialect === 'mysql' ? Buffer.from(key, 'utf8') : key;
}

/**
 * Deletes vouchers older than `ageMs` by the database's clock, at most `limit`; returns how many went.
 * A deleted voucher can be had again: choose an age that no repeat reaches.
 *
 * @throws OPTION_INVALID ageMs 1_000 to 3_650 days, limit 1 to 100_000 (default 1_000)
 */
export async function purgeVouchers(
  database: SqlDatabase,
  options: { readonly ageMs: number; readonly limit?: number },
): Promise<number> {
  knownOptions('purge options', options, ['ageMs', 'limit']);
  const { dialect } = database;
  const ageMs = integerOption('ageMs', options.ageMs ?? Number.NaN, {
    min: 1_000,
    max: 3_650 * 86_400_000,
    fallback: 0,
  });
  const limit = integerOption('limit', options.limit, { min: 1, max: 100_000, fallback: 1_000 });
  const old = `created_ms < ${sqlNowMs[dialect]} - $1`;
  const text =
    dialect === 'mysql'
      ? `DELETE FROM turngate_voucher WHERE ${old} LIMIT ${limit}`
      : `DELETE FROM turngate_voucher WHERE (name, voucher_key) IN
          (SELECT name, voucher_key FROM turngate_voucher WHERE ${old} LIMIT ${limit})`;
  return (await database.query(text, [ageMs])).affectedRows;
}

/** What may happen once. */
export const once: { readonly voucher: typeof voucher } = { voucher };
