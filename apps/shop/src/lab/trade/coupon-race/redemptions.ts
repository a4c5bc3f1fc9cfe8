/** Statements the mistakes share, so that each of their files shows only its flaw. */
import type { SqlSession } from 'turngate/contract';
import type { Redeem } from '../../../trade/coupons.ts';
import { nowMs } from '../../../trade/store.ts';

/** How many have been redeemed, by all and by one customer, and how many may be. */
export interface CouponCount {
  readonly total: number;
  readonly perUser: number;
  readonly used: number;
  readonly usedByUser: number;
}

export async function countRedemptions(
  sql: Pick<SqlSession, 'query'>,
  { couponId, userId }: Redeem,
): Promise<CouponCount> {
  const { rows } = await sql.query(
    `SELECT c.total AS total, c.per_user AS per_user, count(r.user_id) AS used,
       count(*) FILTER (WHERE r.user_id = $2) AS used_by_user
     FROM shop_coupon c LEFT JOIN shop_coupon_redemption r ON r.coupon_id = c.coupon_id
     WHERE c.coupon_id = $1 GROUP BY c.coupon_id`,
    [couponId, userId],
  );
  const row = rows[0] as Record<string, unknown>;
  return {
    total: Number(row['total']),
    perUser: Number(row['per_user']),
    used: Number(row['used']),
    usedByUser: Number(row['used_by_user']),
  };
}

export async function insertRedemption(
  sql: Pick<SqlSession, 'query' | 'dialect'>,
  { couponId, userId, redeemNo }: Required<Redeem>,
): Promise<void> {
  await sql.query(
    `INSERT INTO shop_coupon_redemption (coupon_id, user_id, redeem_no, at_ms)
     VALUES ($1, $2, $3, ${nowMs(sql)})`,
    [couponId, userId, redeemNo],
  );
}
