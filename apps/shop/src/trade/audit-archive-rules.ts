/** What must hold about the archive: an order is in one place, with everything that is its own. */

const children = ['payment', 'payment_attempt', 'refund', 'return'];

export const archiveRules = {
  ARCHIVED_TWICE: `SELECT o.order_no AS id, 'live and archived' AS detail
    FROM shop_order o JOIN shop_order_archive a ON a.order_no = o.order_no`,
  ARCHIVED_APART: `SELECT c.order_no AS id, concat(c.what, ' is archived, its order is not') AS detail
    FROM (${children
      .map((table) => `SELECT order_no, '${table}' AS what FROM shop_${table}_archive`)
      .join(' UNION ALL ')}) c
    LEFT JOIN shop_order_archive o ON o.order_no = c.order_no WHERE o.order_no IS NULL`,
};
