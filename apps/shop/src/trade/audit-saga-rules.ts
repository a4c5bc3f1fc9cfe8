/** What must hold about returns, checkouts and the depot, whoever died in the middle. */

/** A staged operation that nobody will go on with. */
const ended = "('done', 'refused', 'released')";

/** The branch row of an ended hold is purged some day; that of a live one never. */
const gone = (hold: string): string =>
  `CASE ${hold}.state WHEN 'HELD' THEN '-' ELSE ${hold}.state END`;

export const sagaRules = {
  RETURN_REFUND_MISMATCH: `SELECT concat(b.order_no, '/', b.return_no) AS id,
      concat('return ', b.status, ', refund ', coalesce(r.status, 'missing')) AS detail
    FROM shop_every_return b LEFT JOIN shop_every_refund r
      ON r.order_no = b.order_no AND r.refund_no = concat('return/', b.return_no)
    WHERE r.status IS NULL OR (b.status = 'REFUSED' AND r.status <> 'FAILED')
      OR (b.status = 'REFUNDING' AND r.status = 'FAILED')
      OR (b.status NOT IN ('REFUSED', 'REFUNDING') AND r.status <> 'SUCCEEDED')`,
  RETURN_UNTOLD: `SELECT b.order_no AS id, 'the return is done, the customer was not told' AS detail
    FROM shop_every_return b LEFT JOIN shop_notification n
      ON n.order_no = b.order_no AND n.kind = 'ORDER_RETURNED'
    WHERE b.status = 'DONE' AND n.order_no IS NULL`,
  RETURN_ABANDONED: `SELECT concat(b.order_no, '/', b.return_no) AS id,
      concat('return ', b.status, ', saga ', coalesce(s.state, 'missing')) AS detail
    FROM shop_every_return b LEFT JOIN turngate_staged s ON s.operation = 'order.return-saga'
      AND s.scope = concat('order:', b.order_no) AND s.record_key = b.return_no
    WHERE b.status NOT IN ('DONE', 'REFUSED') AND coalesce(s.state, 'done') IN ${ended}`,
  RESERVED_MISMATCH: `SELECT 'reserved' AS id,
      concat('ledger ', m.ledger, ', checkouts hold ', m.held) AS detail
    FROM (SELECT
        (SELECT coalesce(sum(amount_minor), 0) FROM shop_ledger WHERE account = 'reserved') AS ledger,
        (SELECT coalesce(sum(amount_minor), 0) FROM shop_checkout WHERE state = 'HELD') AS held) m
    WHERE m.ledger <> m.held`,
  CHECKOUT_ABANDONED: `SELECT c.gid AS id,
      concat('money held, checkout ', coalesce(s.state, 'missing')) AS detail
    FROM shop_checkout c LEFT JOIN turngate_staged s ON s.operation = 'checkout'
      AND s.scope = concat('user:', c.user_id) AND s.record_key = c.checkout_no
    WHERE c.state = 'HELD' AND coalesce(s.state, 'done') IN ${ended}`,
  CHECKOUT_BRANCH_MISMATCH: `SELECT c.gid AS id,
      concat('money ', c.state, ', branch ', coalesce(b.state, 'missing')) AS detail
    FROM shop_checkout c LEFT JOIN turngate_branch b ON b.gid = c.gid AND b.branch = 'balance'
    WHERE coalesce(b.state, ${gone('c')}) <> CASE c.state WHEN 'HELD' THEN 'TRIED' ELSE c.state END`,
  // Both sides are in this database only where the depot is.
  CHECKOUT_SPLIT: `SELECT d.gid AS id,
      concat('units ', d.state, ', money ', coalesce(c.state, 'missing')) AS detail
    FROM shop_depot_hold d LEFT JOIN shop_checkout c ON c.gid = d.gid
    WHERE (d.state = 'CONFIRMED' AND coalesce(c.state, '-') = 'CANCELLED')
      OR (d.state = 'CANCELLED' AND coalesce(c.state, '-') = 'CONFIRMED')`,
};

export const depotRules = {
  DEPOT_NOT_CONSERVED: `SELECT d.sku_id AS id, concat('supplied ', coalesce(s.units, 0), ', left ',
      d.units_left, ' + held ', d.units_held, ' + sold ', d.units_sold) AS detail
    FROM shop_depot d
    LEFT JOIN (SELECT sku_id, sum(units) AS units FROM shop_depot_supply GROUP BY sku_id) s
      ON s.sku_id = d.sku_id
    WHERE coalesce(s.units, 0) <> d.units_left + d.units_held + d.units_sold`,
  DEPOT_HOLDS_MISMATCH: `SELECT d.sku_id AS id, concat('held ', d.units_held, ' by rows ',
      coalesce(h.held, 0), ', sold ', d.units_sold, ' by rows ', coalesce(h.sold, 0)) AS detail
    FROM shop_depot d
    LEFT JOIN (SELECT sku_id, sum(CASE WHEN state = 'HELD' THEN units ELSE 0 END) AS held,
        sum(CASE WHEN state = 'CONFIRMED' THEN units ELSE 0 END) AS sold
      FROM shop_depot_hold GROUP BY sku_id) h ON h.sku_id = d.sku_id
    WHERE d.units_held <> coalesce(h.held, 0) OR d.units_sold <> coalesce(h.sold, 0)`,
  DEPOT_BRANCH_MISMATCH: `SELECT h.gid AS id,
      concat('units ', h.state, ', branch ', coalesce(b.state, 'missing')) AS detail
    FROM shop_depot_hold h LEFT JOIN turngate_branch b ON b.gid = h.gid AND b.branch = 'stock'
    WHERE coalesce(b.state, ${gone('h')}) <> CASE h.state WHEN 'HELD' THEN 'TRIED' ELSE h.state END`,
};
