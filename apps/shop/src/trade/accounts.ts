/** Balances of customers: deposits, withdrawals, and paying from them. */
import type { Operation } from 'turngate';
import type { SqlSession } from 'turngate/contract';
import { customerAccount, houseAccounts, post } from './ledger.ts';
import { ShopError } from './shop-error.ts';
import { firstRow, type Store, type Tx } from './store.ts';

/** Money into or out of a balance. The number is the caller's, unique per customer. */
export interface Movement {
  readonly userId: string;
  readonly txnNo: string;
  readonly amountMinor: number;
}

/** What a movement left behind. */
export interface MovementDone extends Movement {
  readonly balanceMinor: number;
}

/** Writing calls about balances. */
export interface AccountOperations {
  readonly deposit: Operation<Tx, Movement, MovementDone>;
  readonly withdraw: Operation<Tx, Movement, MovementDone>;
}

const keySource = 'txnNo in the body, per customer; no header needed';
const yearsMs = 3_650 * 86_400_000;

/** Declares them. */
export function accountOperations({ gate, database }: Store): AccountOperations {
  const declare = (
    name: string,
    run: (movement: Movement, sql: SqlSession) => Promise<MovementDone>,
  ): Operation<Tx, Movement, MovementDone> =>
    gate.operation({
      name,
      scope: ({ userId }: Movement) => `user:${userId}`,
      key: ({ txnNo }: Movement) => txnNo,
      keySource,
      retentionMs: yearsMs, // A movement's number is its key for as long as the books are kept.
      run: (movement, { tx }) => run(movement, database.session(tx)),
    });
  return {
    deposit: declare('account.deposit', deposit),
    withdraw: declare('account.withdraw', withdraw),
  };
}

/** The balance of a customer; one who never had any has zero. */
export async function readBalance(sql: SqlSession, userId: string): Promise<number> {
  const text = 'SELECT balance_minor FROM shop_account WHERE user_id = $1';
  return Number((await firstRow(sql, text, [userId]))?.['balance_minor'] ?? 0);
}

/**
 * Takes from a balance, never below zero: the guard in the statement decides, not a read.
 *
 * @throws INSUFFICIENT_BALANCE
 */
export async function takeFromBalance(
  sql: SqlSession,
  userId: string,
  amountMinor: number,
): Promise<void> {
  const { affectedRows } = await sql.query(
    `UPDATE shop_account SET balance_minor = balance_minor - $2
     WHERE user_id = $1 AND balance_minor >= $2`,
    [userId, amountMinor],
  );
  if (affectedRows === 0) {
    throw new ShopError('INSUFFICIENT_BALANCE', `the balance of ${userId} is too low`);
  }
}

/** Adds to a balance; the first addition opens the account. */
export async function addToBalance(
  sql: SqlSession,
  userId: string,
  amountMinor: number,
): Promise<void> {
  const onConflict =
    sql.dialect === 'mysql'
      ? 'ON DUPLICATE KEY UPDATE balance_minor = balance_minor + VALUES(balance_minor)'
      : 'ON CONFLICT (user_id) DO UPDATE SET balance_minor = shop_account.balance_minor + excluded.balance_minor';
  await sql.query(
    `INSERT INTO shop_account (user_id, balance_minor) VALUES ($1, $2) ${onConflict}`,
    [userId, amountMinor],
  );
}

async function deposit(movement: Movement, sql: SqlSession): Promise<MovementDone> {
  const { userId, txnNo, amountMinor } = movement;
  await addToBalance(sql, userId, amountMinor);
  await post(sql, {
    txnId: `deposit:${userId}:${txnNo}`,
    kind: 'deposit',
    entries: [
      { account: houseAccounts.outside, amountMinor: -amountMinor },
      { account: customerAccount(userId), amountMinor },
    ],
  });
  return { ...movement, balanceMinor: await readBalance(sql, userId) };
}

async function withdraw(movement: Movement, sql: SqlSession): Promise<MovementDone> {
  const { userId, txnNo, amountMinor } = movement;
  await takeFromBalance(sql, userId, amountMinor);
  await post(sql, {
    txnId: `withdrawal:${userId}:${txnNo}`,
    kind: 'withdrawal',
    entries: [
      { account: customerAccount(userId), amountMinor: -amountMinor },
      { account: houseAccounts.outside, amountMinor },
    ],
  });
  return { ...movement, balanceMinor: await readBalance(sql, userId) };
}
