/** What must hold in the books. Each query returns (id, detail) for every row that breaks its rule. */
import type { SqlDialect } from 'turngate/contract';
import { archiveRules } from './audit-archive-rules.ts';
import { messageRules } from './audit-message-rules.ts';
import { depotRules, sagaRules } from './audit-saga-rules.ts';

const paidStates = "'PAID', 'SHIPPED', 'COMPLETED'";

/** The rules by name, in the words of one database. */
export function auditRules(dialect: SqlDialect): Record<string, string> {
  const nowMs =
    dialect === 'mysql'
      ? "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000"
      : 'extract(epoch FROM clock_timestamp()) * 1000';
  return {
    ...orderRules,
    ...moneyRules,
    ...limitRules,
    ...sagaRules,
    ...depotRules,
    ...archiveRules,
    ...messageRules(nowMs),
    ...recordRules(nowMs, dialect === 'mysql' ? 'record_key' : 'key'),
  };
}

const orderRules = {
  PAID_WITHOUT_PAYMENT: `SELECT o.order_no AS id, concat(o.status, ', but no payment') AS detail
    FROM shop_every_order o LEFT JOIN shop_every_payment p ON p.order_no = o.order_no
    WHERE o.status IN (${paidStates}) AND p.order_no IS NULL`,
  PAYMENT_WITHOUT_PAID_ORDER: `SELECT o.order_no AS id, concat('payment, but order is ', o.status) AS detail
    FROM shop_every_payment p JOIN shop_every_order o ON o.order_no = p.order_no
    WHERE o.status NOT IN (${paidStates})`,
  AMOUNT_MISMATCH: `SELECT o.order_no AS id, concat(p.amount_minor, ' paid for ', o.amount_minor) AS detail
    FROM shop_every_payment p JOIN shop_every_order o ON o.order_no = p.order_no
    WHERE p.amount_minor <> o.amount_minor`,
  STOCK_NOT_CONSERVED: `SELECT s.sku_id AS id, concat('initial ', s.stock_initial, ' + restocked ',
      coalesce(r.units, 0), ' + returned ', coalesce(b.units, 0), ' - sold ', coalesce(o.units, 0), ' - set aside ', coalesce(a.units, 0),
      ' <> ', s.stock_current) AS detail
    FROM shop_sku s
    LEFT JOIN (SELECT sku_id, sum(units) AS units FROM shop_restock GROUP BY sku_id) r
      ON r.sku_id = s.sku_id
    LEFT JOIN (SELECT sku_id, sum(quantity) AS units FROM shop_every_order
      WHERE status IN (${paidStates}) AND activity_id IS NULL GROUP BY sku_id) o ON o.sku_id = s.sku_id
    LEFT JOIN (SELECT sku_id, sum(units) AS units FROM shop_activity GROUP BY sku_id) a
      ON a.sku_id = s.sku_id
    LEFT JOIN (SELECT sku_id, sum(units) AS units FROM shop_every_return
      WHERE status IN ('RESTOCKED', 'COUPON_BACK', 'DONE') GROUP BY sku_id) b ON b.sku_id = s.sku_id
    WHERE s.stock_initial + coalesce(r.units, 0) + coalesce(b.units, 0) - coalesce(o.units, 0)
      - coalesce(a.units, 0) <> s.stock_current OR s.stock_current < 0`,
  HISTORY_BROKEN: `SELECT h.id, h.detail FROM (
      SELECT o.order_no AS id,
        concat('state ', o.status, ', history ends in ', coalesce(t.to_state, 'nothing')) AS detail
      FROM shop_every_order o
      LEFT JOIN (SELECT entity_id, max(version) AS version FROM turngate_transition
        WHERE flow = 'order' GROUP BY entity_id) l ON l.entity_id = o.order_no
      LEFT JOIN turngate_transition t
        ON t.flow = 'order' AND t.entity_id = o.order_no AND t.version = l.version
      WHERE o.status <> coalesce(t.to_state, 'PENDING_PAY')
      UNION ALL
      SELECT s.entity_id, concat('step ', s.version, ' starts from ', s.from_state)
      FROM (SELECT entity_id, version, from_state, lag(to_state)
          OVER (PARTITION BY entity_id ORDER BY version) AS before_state
        FROM turngate_transition WHERE flow = 'order') s
      WHERE s.from_state <> coalesce(s.before_state, 'PENDING_PAY')) h`,
};

const moneyRules = {
  LEDGER_NOT_ZERO: `SELECT txn_id AS id, concat('adds up to ', sum(amount_minor)) AS detail
    FROM shop_ledger GROUP BY txn_id HAVING sum(amount_minor) <> 0`,
  BALANCE_MISMATCH: `SELECT a.user_id AS id,
      concat('balance ', a.balance_minor, ', ledger ', coalesce(l.amount, 0)) AS detail
    FROM shop_account a
    LEFT JOIN (SELECT account, sum(amount_minor) AS amount FROM shop_ledger GROUP BY account) l
      ON l.account = concat('user:', a.user_id)
    WHERE a.balance_minor <> coalesce(l.amount, 0) OR a.balance_minor < 0`,
  PAYMENT_NOT_IN_LEDGER: `SELECT p.order_no AS id, 'payment without its ledger entry' AS detail
    FROM shop_every_payment p LEFT JOIN shop_ledger l
      ON l.txn_id = concat('payment:', p.order_no) AND l.account = 'sales'
        AND l.amount_minor = p.amount_minor
    WHERE l.txn_id IS NULL`,
  REFUNDS_MISMATCH: `SELECT p.order_no AS id,
      concat('refunded ', p.refunded_minor, ', refund rows ', coalesce(r.amount, 0)) AS detail
    FROM shop_every_payment p
    LEFT JOIN (SELECT order_no, sum(amount_minor) AS amount FROM shop_every_refund
      WHERE reason <> 'LATE_PAYMENT' AND status <> 'FAILED' GROUP BY order_no) r ON r.order_no = p.order_no
    WHERE p.refunded_minor <> coalesce(r.amount, 0) OR p.refunded_minor > p.amount_minor`,
  CHANNEL_MONEY_LOST: `SELECT t.payment_no AS id, 'received, but neither booked nor sent back' AS detail
    FROM shop_every_payment_attempt t
    LEFT JOIN shop_every_payment p ON p.payment_no = t.payment_no
    LEFT JOIN shop_every_refund r ON r.payment_no = t.payment_no AND r.reason = 'LATE_PAYMENT'
    WHERE t.status = 'SUCCESS' AND p.order_no IS NULL AND r.refund_no IS NULL`,
  CHANNEL_MONEY_TWICE: `SELECT t.payment_no AS id, 'booked and sent back as late' AS detail
    FROM shop_every_payment_attempt t
    JOIN shop_every_payment p ON p.payment_no = t.payment_no
    JOIN shop_every_refund r ON r.payment_no = t.payment_no AND r.reason = 'LATE_PAYMENT'`,
};

const limitRules = {
  COUPON_OVERUSED: `SELECT c.coupon_id AS id, concat('redeemed ', c.redeemed, ', rows ',
      coalesce(r.n, 0), ', total ', c.total) AS detail
    FROM shop_coupon c LEFT JOIN (SELECT coupon_id, count(*) AS n FROM shop_coupon_redemption
      GROUP BY coupon_id) r ON r.coupon_id = c.coupon_id
    WHERE c.redeemed <> coalesce(r.n, 0) OR c.redeemed > c.total`,
  COUPON_OVER_LIMIT: `SELECT concat(r.coupon_id, '/', r.user_id) AS id, concat('used ', r.n) AS detail
    FROM (SELECT coupon_id, user_id, count(*) AS n FROM shop_coupon_redemption
      GROUP BY coupon_id, user_id) r
    JOIN shop_coupon c ON c.coupon_id = r.coupon_id WHERE r.n > c.per_user`,
  ACTIVITY_NOT_CONSERVED: `SELECT a.activity_id AS id, concat('units ', a.units, ', left ',
      s.units_left, ', in orders ', coalesce(o.n, 0)) AS detail
    FROM shop_activity a
    JOIN (SELECT item, sum(units_left) AS units_left FROM turngate_stock_segment GROUP BY item) s
      ON s.item = concat('activity:', a.activity_id)
    LEFT JOIN (SELECT activity_id, count(*) AS n FROM shop_every_order
      WHERE activity_id IS NOT NULL AND status NOT IN ('CANCELLED', 'CLOSED') GROUP BY activity_id) o
      ON o.activity_id = a.activity_id
    WHERE a.units <> s.units_left + coalesce(o.n, 0)`,
  RESERVATION_MISMATCH: `SELECT o.order_no AS id,
      concat('order ', o.status, ', reservation ', coalesce(r.state, 'missing')) AS detail
    FROM shop_every_order o LEFT JOIN turngate_reservation r
      ON r.reservation_id = concat('order:', o.order_no)
    WHERE o.activity_id IS NOT NULL AND coalesce(r.state, '-') <> CASE
      WHEN o.status IN (${paidStates}) THEN 'SETTLED'
      WHEN o.status IN ('CANCELLED', 'CLOSED') THEN 'RELEASED' ELSE 'HELD' END`,
  ACTIVITY_OVER_LIMIT: `SELECT concat(o.activity_id, '/', o.user_id) AS id,
      concat('bought ', o.n) AS detail
    FROM (SELECT activity_id, user_id, count(*) AS n FROM shop_every_order
      WHERE activity_id IS NOT NULL GROUP BY activity_id, user_id) o
    JOIN shop_activity a ON a.activity_id = o.activity_id WHERE o.n > a.per_user`,
};

const recordRules = (nowMs: string, key: string): Record<string, string> => ({
  DONE_WITHOUT_EFFECT: `SELECT r.${key} AS id, concat(r.operation, ' is recorded as done, order is ',
      coalesce(o.status, 'missing')) AS detail
    FROM turngate_record r LEFT JOIN shop_every_order o ON o.order_no = r.${key}
    WHERE r.state = 'done' AND (
      (r.operation = 'order.pay' AND coalesce(o.status, '-') NOT IN (${paidStates}))
      OR (r.operation = 'order.cancel' AND coalesce(o.status, '-') <> 'CANCELLED')
      OR (r.operation = 'order.ship' AND coalesce(o.status, '-') NOT IN ('SHIPPED', 'COMPLETED'))
      OR (r.operation = 'order.complete' AND coalesce(o.status, '-') <> 'COMPLETED'))`,
  // Only while the record must still be there: records outlive payments by their retention.
  EFFECT_WITHOUT_RECORD: `SELECT p.order_no AS id, 'paid, but no record' AS detail
    FROM shop_every_payment p LEFT JOIN turngate_record r
      ON r.operation = 'order.pay' AND r.scope = '-' AND r.${key} = p.order_no
    WHERE r.${key} IS NULL AND p.source <> 'CHANNEL'
      AND p.paid_at_ms > ${nowMs} - 29.0 * 86400000`,
  CREATED_ORDER_LOST: `SELECT r.${key} AS id, 'the order recorded under this key does not exist' AS detail
    FROM turngate_record r LEFT JOIN shop_every_order o
      ON concat('user:', o.user_id) = r.scope AND o.client_key =
        CASE r.operation WHEN 'order.submit' THEN concat('submit:', r.${key}) ELSE r.${key} END
    WHERE r.operation IN ('order.create', 'order.submit') AND r.state = 'done'
      AND o.order_no IS NULL`,
});
