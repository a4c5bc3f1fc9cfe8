/**
 * Constraints of the shop's tables that would turn a mistake into an error. In the lab they are down, for
 * the right ones and the wrong ones alike: what keeps the laws is then the code alone.
 */

export const paymentWalls: readonly string[] = [
  'ALTER TABLE shop_payment DROP CONSTRAINT IF EXISTS shop_payment_pkey',
  'CREATE INDEX IF NOT EXISTS lab_payment_order ON shop_payment (order_no)',
  'ALTER TABLE shop_ledger DROP CONSTRAINT IF EXISTS shop_ledger_pkey',
  'CREATE INDEX IF NOT EXISTS lab_ledger_txn ON shop_ledger (txn_id)',
];

export const refundWalls: readonly string[] = [
  'ALTER TABLE shop_payment DROP CONSTRAINT IF EXISTS shop_payment_refunds',
  'ALTER TABLE shop_refund DROP CONSTRAINT IF EXISTS shop_refund_pkey',
  'CREATE INDEX IF NOT EXISTS lab_refund_order ON shop_refund (order_no)',
];

export const couponWalls: readonly string[] = [
  'ALTER TABLE shop_coupon DROP CONSTRAINT IF EXISTS shop_coupon_check',
  'ALTER TABLE shop_coupon DROP CONSTRAINT IF EXISTS shop_coupon_redeemed_check',
  'ALTER TABLE shop_coupon_redemption DROP CONSTRAINT IF EXISTS shop_coupon_redemption_pkey',
  'CREATE INDEX IF NOT EXISTS lab_redemption_coupon ON shop_coupon_redemption (coupon_id, user_id)',
];

export const pointsWalls: readonly string[] = [
  'ALTER TABLE shop_points DROP CONSTRAINT IF EXISTS shop_points_pkey',
  'CREATE INDEX IF NOT EXISTS lab_points_order ON shop_points (order_no)',
];
