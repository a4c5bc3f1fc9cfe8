/** Orders: create, pay, cancel. Each is one declared operation. */
import { randomBytes } from 'node:crypto';
import type { Gate, Operation } from 'turngate';
import type { PgClientLike } from 'turngate/postgres';
import { orderFlow } from './order-flow.ts';
import { ShopError } from './shop-error.ts';

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

/** A paid order. */
export interface Payment {
  readonly orderNo: string;
  readonly status: 'PAID';
  readonly amountMinor: number;
  readonly paidAt: string;
}

/** A cancelled order. */
export interface Cancellation {
  readonly orderNo: string;
  readonly status: 'CANCELLED';
}

interface OrderRef {
  readonly orderNo: string;
}

/** Writing calls about orders. */
export interface OrderOperations {
  readonly create: Operation<PgClientLike, CreateOrder, Order>;
  readonly pay: Operation<PgClientLike, OrderRef, Payment>;
  readonly cancel: Operation<PgClientLike, OrderRef, Cancellation>;
}

const currency = 'CNY';
const keySource = 'orderNo in the path; no header needed';

/** Declares them. */
export function orderOperations(gate: Gate<PgClientLike>): OrderOperations {
  // Paying and cancelling one order are different requests that compete: they share its lock. The
  // guarded state change underneath is what makes it right; the lock spares them the collision.
  const lock = ({ orderNo }: OrderRef): string => `order:${orderNo}`;
  return {
    create: gate.operation({
      name: 'order.create',
      scope: (order: CreateOrder) => `user:${order.userId}`,
      key: (order: CreateOrder) => order.idempotencyKey,
      keySource: 'the Idempotency-Key header, per user',
      fingerprint: ({ userId, skuId, quantity }) => ({ userId, skuId, quantity }),
      run: (order, { tx }) => insertOrder(order, tx),
    }),
    pay: gate.operation({
      name: 'order.pay',
      key: (order: OrderRef) => order.orderNo,
      keySource,
      lock,
      run: (order, { tx }) => payOrder(order, tx),
    }),
    cancel: gate.operation({
      name: 'order.cancel',
      key: (order: OrderRef) => order.orderNo,
      keySource,
      lock,
      run: (order, { tx }) => cancelOrder(order, tx),
    }),
  };
}

/** Reads one order. */
export async function readOrder(db: PgClientLike, orderNo: string): Promise<Order> {
  const text = `SELECT user_id, sku_id, quantity, amount_minor, currency, status, created_at
    FROM shop_order WHERE order_no = $1`;
  const { rows } = await db.query({ name: 'order_read', text, values: [orderNo] });
  if (rows.length === 0) throw notFound(orderNo);
  const [row] = rows;
  return {
    orderNo,
    userId: row.user_id,
    skuId: row.sku_id,
    quantity: Number(row.quantity),
    amountMinor: Number(row.amount_minor),
    currency: row.currency,
    status: row.status,
    createdAt: row.created_at.toISOString(),
  };
}

async function insertOrder(order: CreateOrder, tx: PgClientLike): Promise<Order> {
  const { userId, skuId, quantity } = order;
  const { rows } = await tx.query(
    `INSERT INTO shop_order (order_no, user_id, sku_id, quantity, amount_minor, currency, status, created_at)
     SELECT $1, $2, sku_id, $4, price_minor * $4, $5, 'PENDING_PAY', date_trunc('milliseconds', clock_timestamp())
     FROM shop_sku WHERE sku_id = $3 RETURNING amount_minor, created_at, order_no`,
    [newOrderNo(), userId, skuId, quantity, currency],
  );
  if (rows.length === 0) throw new ShopError('SKU_NOT_FOUND', `there is no article ${skuId}`);
  const [row] = rows;
  return {
    orderNo: row.order_no,
    userId,
    skuId,
    quantity,
    amountMinor: Number(row.amount_minor),
    currency,
    status: 'PENDING_PAY',
    createdAt: row.created_at.toISOString(),
  };
}

async function payOrder({ orderNo }: OrderRef, tx: PgClientLike): Promise<Payment> {
  const move = await orderFlow.fire('pay', { tx, id: orderNo });
  if (move.kind === 'missing') throw notFound(orderNo);
  if (move.kind === 'refused') throw stateConflict(orderNo, move.state, 'paid');
  const payment =
    move.kind === 'applied' ? await charge(orderNo, tx) : await readPayment(orderNo, tx);
  const paidAt = payment.paid_at.toISOString();
  return { orderNo, status: 'PAID', amountMinor: Number(payment.amount_minor), paidAt };
}

type PaymentRow = { amount_minor: string; paid_at: Date };

/** Takes the stock and books the payment in one statement; the guard decides, not a read. */
async function charge(orderNo: string, tx: PgClientLike): Promise<PaymentRow> {
  const { rows } = await tx.query({
    name: 'order_charge',
    text: `WITH bought AS (
        SELECT sku_id, quantity, amount_minor FROM shop_order WHERE order_no = $1),
      taken AS (
        UPDATE shop_sku AS s SET stock_current = s.stock_current - bought.quantity
        FROM bought WHERE s.sku_id = bought.sku_id AND s.stock_current >= bought.quantity
        RETURNING s.sku_id)
      INSERT INTO shop_payment (order_no, amount_minor, paid_at)
      SELECT $1, bought.amount_minor, date_trunc('milliseconds', clock_timestamp())
      FROM bought, taken RETURNING amount_minor, paid_at`,
    values: [orderNo],
  });
  // Thrown, so the state change is rolled back and the key stays free: pay again after a restock.
  if (rows.length === 0) throw new ShopError('OUT_OF_STOCK', `not enough stock for ${orderNo}`);
  return rows[0];
}

async function readPayment(orderNo: string, tx: PgClientLike): Promise<PaymentRow> {
  const text = 'SELECT amount_minor, paid_at FROM shop_payment WHERE order_no = $1';
  const { rows } = await tx.query(text, [orderNo]);
  return rows[0];
}

async function cancelOrder({ orderNo }: OrderRef, tx: PgClientLike): Promise<Cancellation> {
  const move = await orderFlow.fire('cancel', { tx, id: orderNo });
  if (move.kind === 'missing') throw notFound(orderNo);
  if (move.kind === 'refused') throw stateConflict(orderNo, move.state, 'cancelled');
  return { orderNo, status: 'CANCELLED' };
}

function newOrderNo(): string {
  const day = new Date().toISOString().slice(0, 10).replaceAll('-', '');
  return `${day}-${randomBytes(10).toString('hex')}`;
}

function notFound(orderNo: string): ShopError {
  return new ShopError('ORDER_NOT_FOUND', `there is no order ${orderNo}`);
}

function stateConflict(orderNo: string, state: string, wanted: string): ShopError {
  const message = `order ${orderNo} is ${state} and cannot be ${wanted}`;
  return new ShopError('ORDER_STATE_CONFLICT', message, { orderStatus: state });
}
