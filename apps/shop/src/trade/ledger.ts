/**
 * The books, double entry: every movement is one numbered entry set whose amounts add up to zero.
 * Accounts are names; a customer's balance is kept beside its entries, guarded against going below
 * zero.
 */
import type { SqlSession } from 'turngate/contract';
import { nowMs } from './store.ts';

/** Accounts of the house; customers have `user:<id>`. */
export const houseAccounts = {
  /** Money outside: what came in from, or went out to, the world. */
  outside: 'outside',
  /** What the payment channel owes us. */
  channel: 'channel',
  /** Held by checkouts that have not ended. */
  reserved: 'reserved',
  /** Earned by paid orders. */
  sales: 'sales',
  /** Paid by mistake or too late; waits for its refund. */
  suspense: 'suspense',
} as const;

/** One side of a movement: positive is received by the account. */
export interface Entry {
  readonly account: string;
  readonly amountMinor: number;
}

/** The account of a customer. */
export function customerAccount(userId: string): string {
  return `user:${userId}`;
}

/**
 * Writes one movement. The number is its identity: writing it twice fails on the primary key.
 *
 * @throws RangeError when the entries do not add up to zero
 */
export async function post(
  sql: SqlSession,
  movement: { readonly txnId: string; readonly kind: string; readonly entries: readonly Entry[] },
): Promise<void> {
  const { txnId, kind, entries } = movement;
  if (entries.reduce((sum, { amountMinor }) => sum + amountMinor, 0) !== 0) {
    throw new RangeError(`ledger entries of ${kind} do not add up to zero`);
  }
  const places = entries.map((_, i) => `($1, $2, $${2 * i + 3}, $${2 * i + 4}, ${nowMs(sql)})`);
  await sql.query(
    `INSERT INTO shop_ledger (txn_id, kind, account, amount_minor, at_ms) VALUES ${places.join(', ')}`,
    [txnId, kind, ...entries.flatMap(({ account, amountMinor }) => [account, amountMinor])],
  );
}
