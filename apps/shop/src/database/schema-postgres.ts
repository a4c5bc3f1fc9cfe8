/** The shop's own tables in PostgreSQL, as numbered changes applied once each. Money is minor units. */

import { postgresArchive } from './schema-archive.ts';

export const postgresChanges: readonly string[] = [
  `CREATE TABLE shop_sku (
    sku_id        text COLLATE "C" PRIMARY KEY,
    name          text NOT NULL,
    price_minor   bigint NOT NULL CHECK (price_minor >= 0),
    stock_initial bigint NOT NULL CHECK (stock_initial >= 0),
    stock_current bigint NOT NULL CHECK (stock_current >= 0),
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  CREATE TABLE shop_restock (
    sku_id     text COLLATE "C" NOT NULL REFERENCES shop_sku,
    restock_no text COLLATE "C" NOT NULL,
    units      bigint NOT NULL CHECK (units > 0),
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (sku_id, restock_no)
  );
  CREATE TABLE shop_order (
    order_no     text COLLATE "C" PRIMARY KEY,
    user_id      text COLLATE "C" NOT NULL,
    sku_id       text COLLATE "C" NOT NULL REFERENCES shop_sku,
    quantity     bigint NOT NULL CHECK (quantity > 0),
    amount_minor bigint NOT NULL CHECK (amount_minor >= 0),
    currency     text COLLATE "C" NOT NULL,
    status       text COLLATE "C" NOT NULL CHECK (status IN ('PENDING_PAY', 'PAID', 'CANCELLED')),
    version      bigint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL
  );
  CREATE TABLE shop_payment (
    order_no     text COLLATE "C" PRIMARY KEY REFERENCES shop_order,
    amount_minor bigint NOT NULL,
    paid_at      timestamptz NOT NULL
  );`,

  // Times become epoch milliseconds, which both databases and all drivers read alike.
  `ALTER TABLE shop_sku DROP COLUMN created_at;
  ALTER TABLE shop_restock ADD COLUMN at_ms bigint NOT NULL DEFAULT 0;
  UPDATE shop_restock SET at_ms = floor(extract(epoch FROM at) * 1000);
  ALTER TABLE shop_restock DROP COLUMN at;
  ALTER TABLE shop_order DROP CONSTRAINT shop_order_status_check;
  ALTER TABLE shop_order
    ADD CONSTRAINT shop_order_status_check CHECK (status IN
      ('PENDING_PAY', 'PAID', 'SHIPPED', 'COMPLETED', 'CLOSING', 'CLOSED', 'CANCELLED')),
    ADD COLUMN client_key text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN activity_id text COLLATE "C",
    ADD COLUMN created_at_ms bigint NOT NULL DEFAULT 0,
    ADD COLUMN due_at_ms bigint NOT NULL DEFAULT 0;
  UPDATE shop_order SET created_at_ms = floor(extract(epoch FROM created_at) * 1000),
    due_at_ms = floor(extract(epoch FROM created_at) * 1000) + 1800000;
  UPDATE shop_order SET client_key = r.key FROM turngate_record r
    WHERE r.operation = 'order.create' AND r.state = 'done'
      AND substr(r.result, 2)::jsonb ->> 'orderNo' = order_no;
  ALTER TABLE shop_order DROP COLUMN created_at;
  CREATE INDEX shop_order_due ON shop_order (due_at_ms) WHERE status IN ('PENDING_PAY', 'CLOSING');
  ALTER TABLE shop_payment
    ADD COLUMN source text COLLATE "C" NOT NULL DEFAULT 'CASH' CHECK (source IN ('CASH', 'BALANCE', 'CHANNEL')),
    ADD COLUMN payment_no text COLLATE "C",
    ADD COLUMN trade_no text COLLATE "C",
    ADD COLUMN refunded_minor bigint NOT NULL DEFAULT 0,
    ADD COLUMN paid_at_ms bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT shop_payment_refunds CHECK (refunded_minor BETWEEN 0 AND amount_minor);
  UPDATE shop_payment SET paid_at_ms = floor(extract(epoch FROM paid_at) * 1000);
  ALTER TABLE shop_payment DROP COLUMN paid_at;
  CREATE TABLE shop_payment_attempt (
    payment_no    text COLLATE "C" PRIMARY KEY,
    order_no      text COLLATE "C" NOT NULL REFERENCES shop_order,
    amount_minor  bigint NOT NULL,
    currency      text COLLATE "C" NOT NULL,
    status        text COLLATE "C" NOT NULL CHECK (status IN ('PENDING', 'SUCCESS', 'FAILED')),
    trade_no      text COLLATE "C",
    created_at_ms bigint NOT NULL,
    settled_at_ms bigint
  );
  CREATE INDEX shop_payment_attempt_order ON shop_payment_attempt (order_no);
  CREATE TABLE shop_refund (
    order_no      text COLLATE "C" NOT NULL REFERENCES shop_order,
    refund_no     text COLLATE "C" NOT NULL,
    payment_no    text COLLATE "C",
    amount_minor  bigint NOT NULL CHECK (amount_minor > 0),
    reason        text COLLATE "C" NOT NULL CHECK (reason IN ('REQUESTED', 'LATE_PAYMENT')),
    status        text COLLATE "C" NOT NULL CHECK (status IN ('PENDING', 'SUCCEEDED', 'FAILED')),
    attempts      integer NOT NULL,
    next_at_ms    bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    PRIMARY KEY (order_no, refund_no)
  );
  CREATE INDEX shop_refund_due ON shop_refund (next_at_ms) WHERE status = 'PENDING';
  CREATE TABLE shop_account (
    user_id       text COLLATE "C" PRIMARY KEY,
    balance_minor bigint NOT NULL CHECK (balance_minor >= 0)
  );
  CREATE TABLE shop_ledger (
    txn_id       text COLLATE "C" NOT NULL,
    account      text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    amount_minor bigint NOT NULL,
    at_ms        bigint NOT NULL,
    PRIMARY KEY (txn_id, account)
  );
  CREATE TABLE shop_coupon (
    coupon_id text COLLATE "C" PRIMARY KEY,
    total     bigint NOT NULL,
    per_user  bigint NOT NULL,
    redeemed  bigint NOT NULL CHECK (redeemed BETWEEN 0 AND total)
  );
  CREATE TABLE shop_coupon_redemption (
    coupon_id text COLLATE "C" NOT NULL REFERENCES shop_coupon,
    user_id   text COLLATE "C" NOT NULL,
    redeem_no text COLLATE "C" NOT NULL,
    at_ms     bigint NOT NULL,
    PRIMARY KEY (coupon_id, user_id, redeem_no)
  );
  CREATE TABLE shop_activity (
    activity_id text COLLATE "C" PRIMARY KEY,
    sku_id      text COLLATE "C" NOT NULL REFERENCES shop_sku,
    units       bigint NOT NULL,
    per_user    bigint NOT NULL
  );
  CREATE TABLE shop_break (
    code      text COLLATE "C" NOT NULL,
    break_key text COLLATE "C" NOT NULL,
    detail    text NOT NULL,
    at_ms     bigint NOT NULL,
    PRIMARY KEY (code, break_key)
  );`,

  // Returns, checkouts, and the depot (which may also live in another database).
  `ALTER TABLE shop_refund DROP CONSTRAINT shop_refund_reason_check;
  ALTER TABLE shop_refund ADD CONSTRAINT shop_refund_reason_check
    CHECK (reason IN ('REQUESTED', 'LATE_PAYMENT', 'RETURN'));
  CREATE TABLE shop_return (
    order_no      text COLLATE "C" NOT NULL REFERENCES shop_order,
    return_no     text COLLATE "C" NOT NULL,
    user_id       text COLLATE "C" NOT NULL,
    sku_id        text COLLATE "C" NOT NULL,
    units         bigint NOT NULL CHECK (units > 0),
    amount_minor  bigint NOT NULL CHECK (amount_minor > 0),
    status        text COLLATE "C" NOT NULL CHECK (status IN
      ('REFUNDING', 'REFUNDED', 'RESTOCKED', 'COUPON_BACK', 'DONE', 'REFUSED')),
    created_at_ms bigint NOT NULL,
    PRIMARY KEY (order_no, return_no)
  );
  CREATE TABLE shop_checkout (
    gid           text COLLATE "C" PRIMARY KEY,
    checkout_no   text COLLATE "C" NOT NULL,
    user_id       text COLLATE "C" NOT NULL,
    amount_minor  bigint NOT NULL CHECK (amount_minor >= 0),
    state         text COLLATE "C" NOT NULL CHECK (state IN ('HELD', 'CONFIRMED', 'CANCELLED')),
    created_at_ms bigint NOT NULL
  );
  CREATE TABLE shop_depot (
    sku_id     text COLLATE "C" PRIMARY KEY,
    units_left bigint NOT NULL CHECK (units_left >= 0),
    units_held bigint NOT NULL CHECK (units_held >= 0),
    units_sold bigint NOT NULL CHECK (units_sold >= 0)
  );
  CREATE TABLE shop_depot_supply (
    sku_id    text COLLATE "C" NOT NULL,
    supply_no text COLLATE "C" NOT NULL,
    units     bigint NOT NULL CHECK (units > 0),
    at_ms     bigint NOT NULL,
    PRIMARY KEY (sku_id, supply_no)
  );
  CREATE TABLE shop_depot_hold (
    gid         text COLLATE "C" PRIMARY KEY,
    checkout_no text COLLATE "C" NOT NULL,
    sku_id      text COLLATE "C" NOT NULL,
    units       bigint NOT NULL CHECK (units > 0),
    state       text COLLATE "C" NOT NULL CHECK (state IN ('HELD', 'CONFIRMED', 'CANCELLED'))
  );`,

  // What listens to paid orders.
  `CREATE TABLE shop_points (
    order_no text COLLATE "C" PRIMARY KEY,
    user_id  text COLLATE "C" NOT NULL,
    points   bigint NOT NULL CHECK (points >= 0),
    at_ms    bigint NOT NULL
  );
  CREATE INDEX shop_points_user ON shop_points (user_id);
  CREATE TABLE shop_notification (
    order_no text COLLATE "C" NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    user_id  text COLLATE "C" NOT NULL,
    at_ms    bigint NOT NULL,
    PRIMARY KEY (order_no, kind)
  );`,

  postgresArchive,
];
