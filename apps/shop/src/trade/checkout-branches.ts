/** The branches of a checkout that live in the shop's own database: the balance, and a coupon. */
import { refuse } from 'turngate';
import type { SqlDatabase, SqlSession } from 'turngate/contract';
import {
  type BranchHandlers,
  createBarrier,
  localParticipant,
  type Participant,
} from 'turngate/saga';
import { addToBalance, takeFromBalance } from './accounts.ts';
import { dropRedemption, redeemOnce } from './coupons.ts';
import { customerAccount, houseAccounts, post } from './ledger.ts';
import { ShopError } from './shop-error.ts';
import { firstRow, nowMs, type Store } from './store.ts';

/** What the balance branch is told. */
export interface BalanceHold {
  readonly checkoutNo: string;
  readonly userId: string;
  readonly skuId: string;
  readonly units: number;
}

/** What the coupon branch is told; without a coupon it has nothing to do. */
export interface CouponHold {
  readonly checkoutNo: string;
  readonly userId: string;
  readonly couponId: string | null;
}

/** The money of a checkout: out of the balance at try, to the sales or back at the end. */
export function balanceParticipant({ database }: Store): Participant<BalanceHold> {
  return localParticipant<BalanceHold>(database as SqlDatabase, createBarrier(), {
    try: refusing(holdMoney),
    confirm: (sql, hold, { gid }) => endMoney(sql, gid, hold, 'CONFIRMED'),
    cancel: (sql, hold, { gid }) => endMoney(sql, gid, hold, 'CANCELLED'),
  });
}

/** The coupon of a checkout: redeemed at try, given back by a cancel. */
export function couponParticipant({ database }: Store): Participant<CouponHold> {
  return localParticipant<CouponHold>(database as SqlDatabase, createBarrier(), {
    try: refusing(async (sql, { checkoutNo, userId, couponId }) => {
      if (couponId === null) return null;
      return await redeemOnce({ couponId, userId, redeemNo: redeemNoOf(checkoutNo) }, sql);
    }),
    confirm: async () => undefined,
    async cancel(sql, { checkoutNo, userId, couponId }) {
      if (couponId === null) return;
      await dropRedemption(sql, { couponId, userId, redeemNo: redeemNoOf(checkoutNo) });
    },
  });
}

/** Clients cannot send a slash, so it is never theirs. */
function redeemNoOf(checkoutNo: string): string {
  return `checkout/${checkoutNo}`;
}

/** The shop's own refusals are a branch's "no"; everything else is tried again. */
function refusing<P>(run: BranchHandlers<P>['try']): BranchHandlers<P>['try'] {
  return async (sql, payload, context) => {
    try {
      return await run(sql, payload, context);
    } catch (error) {
      if (error instanceof ShopError) throw refuse(error.code, error.message);
      throw error;
    }
  };
}

async function holdMoney(
  sql: SqlSession,
  hold: BalanceHold,
  { gid }: { readonly gid: string },
): Promise<{ readonly amountMinor: number }> {
  const { checkoutNo, userId, skuId, units } = hold;
  const sku = await firstRow(sql, 'SELECT price_minor FROM shop_sku WHERE sku_id = $1', [skuId]);
  if (sku === undefined) throw refuse('SKU_NOT_FOUND', `there is no article ${skuId}`);
  const amountMinor = Number(sku['price_minor']) * units;
  await takeFromBalance(sql, userId, amountMinor);
  await sql.query(
    `INSERT INTO shop_checkout (gid, checkout_no, user_id, amount_minor, state, created_at_ms)
     VALUES ($1, $2, $3, $4, 'HELD', ${nowMs(sql)})`,
    [gid, checkoutNo, userId, amountMinor],
  );
  await transfer(sql, `hold:${gid}`, customerAccount(userId), houseAccounts.reserved, amountMinor);
  return { amountMinor };
}

/** Runs once per gid, and only after its try: the barrier sees to both. */
async function endMoney(
  sql: SqlSession,
  gid: string,
  { userId }: BalanceHold,
  state: 'CONFIRMED' | 'CANCELLED',
): Promise<void> {
  const row = await firstRow(sql, 'SELECT amount_minor FROM shop_checkout WHERE gid = $1', [gid]);
  const amountMinor = Number(row?.['amount_minor']);
  const to = state === 'CONFIRMED' ? houseAccounts.sales : customerAccount(userId);
  if (state === 'CANCELLED') await addToBalance(sql, userId, amountMinor);
  await transfer(sql, `end:${gid}`, houseAccounts.reserved, to, amountMinor);
  await sql.query('UPDATE shop_checkout SET state = $2 WHERE gid = $1', [gid, state]);
}

async function transfer(
  sql: SqlSession,
  txnId: string,
  from: string,
  to: string,
  amountMinor: number,
): Promise<void> {
  await post(sql, {
    txnId: `checkout-${txnId}`,
    kind: 'checkout',
    entries: [
      { account: from, amountMinor: -amountMinor },
      { account: to, amountMinor },
    ],
  });
}
