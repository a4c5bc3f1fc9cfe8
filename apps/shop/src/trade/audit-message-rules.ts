/** What must hold about points and notifications: a consumed message and its effect are one. */

const days29 = '29.0 * 86400000';

export function messageRules(nowMs: string): Record<string, string> {
  return {
    POINTS_MISMATCH: `SELECT s.order_no AS id,
        concat(s.points, ' points for ', coalesce(p.amount_minor, 0)) AS detail
      FROM shop_points s LEFT JOIN shop_every_payment p ON p.order_no = s.order_no
      LEFT JOIN shop_every_order o ON o.order_no = s.order_no
      WHERE p.order_no IS NULL OR o.user_id <> s.user_id
        OR s.points <> floor(p.amount_minor / 100)`,
    CONSUMED_WITHOUT_EFFECT: `SELECT concat(i.consumer, '/', i.message_id) AS id,
        'the message is marked as consumed, its row is missing' AS detail
      FROM turngate_inbox i
      LEFT JOIN shop_points s ON i.consumer = 'shop.points' AND s.order_no = i.message_id
      LEFT JOIN shop_notification n ON i.consumer = 'shop.notifications'
        AND n.order_no = i.message_id AND n.kind = 'ORDER_PAID'
      WHERE i.source = 'order.paid' AND i.consumer IN ('shop.points', 'shop.notifications')
        AND s.order_no IS NULL AND n.order_no IS NULL`,
    // Only while the mark must still be there.
    EFFECT_WITHOUT_MESSAGE: `SELECT e.id, 'its row is there, but no message was consumed' AS detail
      FROM (SELECT order_no AS id, 'shop.points' AS consumer, at_ms FROM shop_points
        UNION ALL
        SELECT order_no, 'shop.notifications', at_ms FROM shop_notification
          WHERE kind = 'ORDER_PAID') e
      LEFT JOIN turngate_inbox i
        ON i.consumer = e.consumer AND i.source = 'order.paid' AND i.message_id = e.id
      WHERE i.message_id IS NULL AND e.at_ms > ${nowMs} - ${days29}`,
  };
}
