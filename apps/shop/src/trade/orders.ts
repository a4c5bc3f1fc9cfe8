/** Orders: create, pay at once, cancel, ship, complete. Each is one declared operation. */
import { randomBytes } from 'node:crypto';
import type { Operation } from 'turngate';
import type { SqlDatabase, SqlSession } from 'turngate/contract';
import { takeFromBalance } from './accounts.ts';
import { giveUnitBack } from './activity-stock.ts';
import { capture, type PayFrom, readCapture } from './capture.ts';
import { fireOrder, type OrderRef, orderNotFound } from './order-flow.ts';
import { isReturned } from './returned.ts';
import { ShopError } from './shop-error.ts';
import { firstRow, isoTime, nowMs, type Store, type Tx } from './store.ts';

/** An order as clients see it. */
export interface Order {
  readonly orderNo: string;
  readonly userId: string;
  readonly skuId: string;
  readonly quantity: number;
  readonly amountMinor: number;
  readonly currency: string;
  readonly status: string;
  readonly createdAt: string;
}

/** What creates an order. The key is the client's, one per intent. */
export interface CreateOrder {
  readonly idempotencyKey: string;
  readonly userId: string;
  readonly skuId: string;
  readonly quantity: number;
}

/** Paying at once, without the channel. */
export interface PayOrder extends OrderRef {
  /** Where the money comes from; cash when it is left out. */
  readonly source?: PayFrom;
}

/** A paid order. */
export interface Payment {
  readonly orderNo: string;
  readonly status: 'PAID';
  readonly amountMinor: number;
  readonly paidAt: string;
}

/** An order after a step that tells nothing more. */
export interface OrderStep {
  readonly orderNo: string;
  readonly status: 'CANCELLED' | 'SHIPPED' | 'COMPLETED';
}

/** Writing calls about orders. */
export interface OrderOperations {
  readonly create: Operation<Tx, CreateOrder, Order>;
  readonly pay: Operation<Tx, PayOrder, Payment>;
  readonly cancel: Operation<Tx, OrderRef, OrderStep>;
  readonly ship: Operation<Tx, OrderRef, OrderStep>;
  readonly complete: Operation<Tx, OrderRef, OrderStep>;
}

const currency = 'CNY';
const keySource = 'orderNo in the path; no header needed';

/** How long an order waits for its money before it is closed. */
const payWithinMs = 30 * 60_000;

/** Declares them. */
export function orderOperations({ gate, database }: Store): OrderOperations {
  // Paying and cancelling one order are different requests that compete: they share its lock. The
  // guarded state change underneath is what makes it right; the lock spares them the collision.
  const lock = ({ orderNo }: OrderRef): string => `order:${orderNo}`;
  const step = (
    name: string,
    run: (orderNo: string, sql: SqlSession) => Promise<OrderStep>,
  ): Operation<Tx, OrderRef, OrderStep> =>
    gate.operation({
      name,
      key: (order: OrderRef) => order.orderNo,
      keySource,
      lock,
      run: ({ orderNo }, { tx }) => run(orderNo, database.session(tx)),
    });
  return {
    create: gate.operation({
      name: 'order.create',
      scope: (order: CreateOrder) => `user:${order.userId}`,
      key: (order: CreateOrder) => order.idempotencyKey,
      keySource: 'the Idempotency-Key header, per user',
      fingerprint: ({ userId, skuId, quantity }) => ({ userId, skuId, quantity }),
      run: (order, { tx }) => insertOrder(order, database.session(tx)),
    }),
    pay: gate.operation({
      name: 'order.pay',
      key: (order: PayOrder) => order.orderNo,
      keySource,
      lock,
      fingerprint: ({ orderNo, source = 'CASH' }: PayOrder) => ({ orderNo, source }),
      run: (order, { tx }) => payOrder(order, database.session(tx)),
    }),
    cancel: step('order.cancel', async (orderNo, sql) => {
      await fireOrder('cancel', orderNo, sql);
      await giveUnitBack(orderNo, sql);
      return { orderNo, status: 'CANCELLED' };
    }),
    ship: step('order.ship', async (orderNo, sql) => {
      await fireOrder('ship', orderNo, sql);
      // After the move, which holds the order's row: a return waits for it.
      if (await isReturned(orderNo, sql)) {
        throw new ShopError('ORDER_STATE_CONFLICT', `order ${orderNo} is being returned`);
      }
      return { orderNo, status: 'SHIPPED' };
    }),
    complete: step('order.complete', async (orderNo, sql) => {
      await fireOrder('complete', orderNo, sql);
      return { orderNo, status: 'COMPLETED' };
    }),
  };
}

/** Reads one order. */
export async function readOrder(database: SqlDatabase<Tx>, orderNo: string): Promise<Order> {
  const { rows } = await database.query(
    `SELECT user_id, sku_id, quantity, amount_minor, currency, status, created_at_ms
     FROM shop_every_order WHERE order_no = $1`,
    [orderNo],
  );
  const [row] = rows;
  if (row === undefined) throw orderNotFound(orderNo);
  return {
    orderNo,
    userId: String(row['user_id']),
    skuId: String(row['sku_id']),
    quantity: Number(row['quantity']),
    amountMinor: Number(row['amount_minor']),
    currency: String(row['currency']),
    status: String(row['status']),
    createdAt: isoTime(row['created_at_ms']),
  };
}

/** What an order is made of when it is written. */
export interface NewOrder {
  readonly userId: string;
  readonly skuId: string;
  readonly quantity: number;
  /** The client's key, so that the audit can match records and orders. */
  readonly clientKey: string;
  /** Set when the units come from a flash sale, which has taken them already. */
  readonly activityId?: string;
}

/** Writes a new order at the article's price. */
export async function writeOrder(order: NewOrder, sql: SqlSession): Promise<Order> {
  const { userId, skuId, quantity, clientKey, activityId = null } = order;
  const orderNo = newOrderNo();
  const { affectedRows } = await sql.query(
    `INSERT INTO shop_order (order_no, user_id, sku_id, quantity, amount_minor, currency, status,
       version, client_key, activity_id, created_at_ms, due_at_ms)
     SELECT $1, $2, sku_id, $4, price_minor * $4, $5, 'PENDING_PAY', 0, $6, $7, ${nowMs(sql)},
       ${nowMs(sql)} + $8
     FROM shop_sku WHERE sku_id = $3`,
    [orderNo, userId, skuId, quantity, currency, clientKey, activityId, payWithinMs],
  );
  if (affectedRows === 0) throw new ShopError('SKU_NOT_FOUND', `there is no article ${skuId}`);
  const row = await firstRow(
    sql,
    'SELECT amount_minor, created_at_ms FROM shop_order WHERE order_no = $1',
    [orderNo],
  );
  return {
    orderNo,
    userId,
    skuId,
    quantity,
    amountMinor: Number(row?.['amount_minor']),
    currency,
    status: 'PENDING_PAY',
    createdAt: isoTime(row?.['created_at_ms']),
  };
}

function insertOrder(order: CreateOrder, sql: SqlSession): Promise<Order> {
  const { userId, skuId, quantity, idempotencyKey } = order;
  return writeOrder({ userId, skuId, quantity, clientKey: idempotencyKey }, sql);
}

async function payOrder({ orderNo, source = 'CASH' }: PayOrder, sql: SqlSession): Promise<Payment> {
  const moved = await fireOrder('pay', orderNo, sql);
  if (moved === 'applied') {
    const { userId, amountMinor } = await capture(sql, { orderNo, source });
    if (source === 'BALANCE') await takeFromBalance(sql, userId, amountMinor);
  }
  const { amountMinor, paidAt } = await readCapture(sql, orderNo);
  return { orderNo, status: 'PAID', amountMinor, paidAt };
}

function newOrderNo(): string {
  const day = new Date().toISOString().slice(0, 10).replaceAll('-', '');
  return `${day}-${randomBytes(10).toString('hex')}`;
}
