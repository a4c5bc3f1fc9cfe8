/** Coupons: a limited number, limited per customer. */
import type { Operation } from 'turngate';
import type { SqlSession } from 'turngate/contract';
import { ShopError } from './shop-error.ts';
import { firstRow, isoTime, nowMs, type Store, type Tx } from './store.ts';

/** A coupon as it is announced. */
export interface Coupon {
  readonly couponId: string;
  readonly total: number;
  readonly perUser: number;
}

/** One customer redeems one coupon; `redeemNo` tells several of one customer apart. */
export interface Redeem {
  readonly couponId: string;
  readonly userId: string;
  readonly redeemNo?: string;
}

/** A redeemed coupon. */
export interface Redemption {
  readonly couponId: string;
  readonly userId: string;
  readonly redeemNo: string;
  readonly redeemedAt: string;
}

/** Writing calls about coupons. */
export interface CouponOperations {
  readonly create: Operation<Tx, Coupon, Coupon>;
  readonly redeem: Operation<Tx, Redeem, Redemption>;
}

const yearsMs = 3_650 * 86_400_000;
const firstRedeemNo = '1';

/** Declares them. */
export function couponOperations({ gate, database }: Store): CouponOperations {
  return {
    create: gate.operation({
      name: 'coupon.create',
      key: ({ couponId }: Coupon) => couponId,
      keySource: 'couponId in the body; no header needed',
      retentionMs: yearsMs,
      run: (coupon, { tx }) => insertCoupon(coupon, database.session(tx)),
    }),
    redeem: gate.operation({
      name: 'coupon.redeem',
      // A user id alone would be a bad key; a user and what one user may have once is a good one.
      scope: ({ couponId }: Redeem) => `coupon:${couponId}`,
      key: ({ userId, redeemNo = firstRedeemNo }: Redeem) => `${userId}/${redeemNo}`,
      keySource: 'couponId in the path and userId (and redeemNo) in the body; no header needed',
      fingerprint: () => null,
      retentionMs: yearsMs,
      run: (redeem, { tx }) => redeemOnce(redeem, database.session(tx)),
    }),
  };
}

async function insertCoupon(coupon: Coupon, sql: SqlSession): Promise<Coupon> {
  const { couponId, total, perUser } = coupon;
  const known = await firstRow(sql, 'SELECT 1 AS known FROM shop_coupon WHERE coupon_id = $1', [
    couponId,
  ]);
  if (known !== undefined) throw new ShopError('COUPON_CONFLICT', `coupon ${couponId} exists`);
  await sql.query(
    'INSERT INTO shop_coupon (coupon_id, total, per_user, redeemed) VALUES ($1, $2, $3, 0)',
    [couponId, total, perUser],
  );
  return { couponId, total, perUser };
}

/** The coupon's row is locked by its own guarded update, so the count per customer cannot race. */
export async function redeemOnce(redeem: Redeem, sql: SqlSession): Promise<Redemption> {
  const { couponId, userId, redeemNo = firstRedeemNo } = redeem;
  const { affectedRows } = await sql.query(
    'UPDATE shop_coupon SET redeemed = redeemed + 1 WHERE coupon_id = $1 AND redeemed < total',
    [couponId],
  );
  if (affectedRows === 0) throw await whyNot(couponId, sql);
  const row = await firstRow(
    sql,
    `SELECT c.per_user AS per_user, ${nowMs(sql)} AS now_ms,
       (SELECT count(*) FROM shop_coupon_redemption r
        WHERE r.coupon_id = c.coupon_id AND r.user_id = $2) AS used
     FROM shop_coupon c WHERE c.coupon_id = $1`,
    [couponId, userId],
  );
  if (Number(row?.['used']) >= Number(row?.['per_user'])) {
    throw new ShopError('COUPON_EXHAUSTED', `${userId} has used coupon ${couponId} up`);
  }
  const atMs = Number(row?.['now_ms']);
  await sql.query(
    `INSERT INTO shop_coupon_redemption (coupon_id, user_id, redeem_no, at_ms)
     VALUES ($1, $2, $3, $4)`,
    [couponId, userId, redeemNo, atMs],
  );
  return { couponId, userId, redeemNo, redeemedAt: isoTime(atMs) };
}

/** A coupon redeemed for an order (its `redeemNo` is the order's number) comes back with the order. */
export async function giveCouponBack(
  sql: SqlSession,
  { orderNo, userId }: { readonly orderNo: string; readonly userId: string },
): Promise<void> {
  const { rows } = await sql.query(
    `SELECT coupon_id FROM shop_coupon_redemption WHERE user_id = $1 AND redeem_no = $2
     ORDER BY coupon_id`,
    [userId, orderNo],
  );
  for (const row of rows) {
    const couponId = String(row['coupon_id']);
    await dropRedemption(sql, { couponId, userId, redeemNo: orderNo });
  }
}

/** Takes a redemption back, or finds none. The coupon's row first, like who redeems. */
export async function dropRedemption(sql: SqlSession, redeem: Required<Redeem>): Promise<void> {
  const { couponId, userId, redeemNo } = redeem;
  await firstRow(sql, 'SELECT redeemed FROM shop_coupon WHERE coupon_id = $1 FOR UPDATE', [
    couponId,
  ]);
  const { affectedRows } = await sql.query(
    `DELETE FROM shop_coupon_redemption WHERE coupon_id = $1 AND user_id = $2 AND redeem_no = $3`,
    [couponId, userId, redeemNo],
  );
  await sql.query('UPDATE shop_coupon SET redeemed = redeemed - $2 WHERE coupon_id = $1', [
    couponId,
    affectedRows,
  ]);
}

async function whyNot(couponId: string, sql: SqlSession): Promise<ShopError> {
  const text = 'SELECT total FROM shop_coupon WHERE coupon_id = $1';
  return (await firstRow(sql, text, [couponId])) === undefined
    ? new ShopError('COUPON_NOT_FOUND', `there is no coupon ${couponId}`)
    : new ShopError('COUPON_EXHAUSTED', `coupon ${couponId} is used up`);
}
