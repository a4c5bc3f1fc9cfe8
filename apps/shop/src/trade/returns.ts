/**
 * Returns: refund, units back into stock, coupon back, word to the customer, as a saga. The money is
 * the pivot: before it the return can still be refused, after it the rest is done until it is done.
 */
import { type Operation, refuse, type StagedOperation } from 'turngate';
import type { SqlSession } from 'turngate/contract';
import { defineSaga, type SagaOutputs } from 'turngate/saga';
import type { ChannelClient } from '../channel/client.ts';
import { findOrBringBack } from './archive.ts';
import { giveCouponBack } from './coupons.ts';
import { orderNotFound } from './order-flow.ts';
import { giveQuotaBack } from './refund-worker.ts';
import { bookRefund } from './refunds.ts';
import { isReturned } from './returned.ts';
import { ShopError } from './shop-error.ts';
import { firstRow, nowMs, type Store, type Tx } from './store.ts';

/** A wish to send everything back. The number is the caller's, unique per order. */
export interface ReturnOrder {
  readonly orderNo: string;
  readonly returnNo: string;
}

/** Where a return stands. REFUSED: the channel did not give the money back, nothing has changed. */
export type ReturnStatus =
  | 'REFUNDING'
  | 'REFUNDED'
  | 'RESTOCKED'
  | 'COUPON_BACK'
  | 'DONE'
  | 'REFUSED';

/** A return as clients see it. */
export interface Return extends ReturnOrder {
  readonly status: ReturnStatus;
  readonly amountMinor: number;
}

/** Returns as the routes use them. */
export interface Returns {
  /** Accepts it and starts the saga in the same transaction. */
  readonly accept: Operation<Tx, ReturnOrder, Return>;
  /** Goes on with it at once; recovery would do it a little later. */
  readonly proceed: StagedOperation<Tx, ReturnOrder, SagaOutputs>;
}

const yearsMs = 3_650 * 86_400_000;

/** Declares them. */
export function returnOperations(
  store: Store,
  channel: ChannelClient,
  { leaseMs = 5_000 }: { readonly leaseMs?: number } = {},
): Returns {
  const { gate, database } = store;
  const proceed = gate.stagedOperation(returnSaga(store, channel, leaseMs));
  const accept = gate.operation({
    name: 'order.return',
    scope: ({ orderNo }: ReturnOrder) => `order:${orderNo}`,
    key: ({ returnNo }: ReturnOrder) => returnNo,
    keySource: 'returnNo in the body, per order; no header needed',
    retentionMs: yearsMs,
    async run(wish, { tx }) {
      const accepted = await open(wish, database.session(tx));
      await proceed.enqueue(tx, wish);
      return accepted;
    },
  });
  return { accept, proceed };
}

/** @throws RETURN_NOT_FOUND */
export async function readReturn(store: Store, wish: ReturnOrder): Promise<Return> {
  const { rows } = await store.database.query(
    'SELECT status, amount_minor FROM shop_every_return WHERE order_no = $1 AND return_no = $2',
    [wish.orderNo, wish.returnNo],
  );
  const [row] = rows;
  if (row === undefined) {
    throw new ShopError('RETURN_NOT_FOUND', `order ${wish.orderNo} has no such return`);
  }
  return {
    ...wish,
    status: row['status'] as ReturnStatus,
    amountMinor: Number(row['amount_minor']),
  };
}

/** The refund that belongs to a return; clients cannot send a slash, so it is never theirs. */
function refundNoOf({ returnNo }: ReturnOrder): string {
  return `return/${returnNo}`;
}

/** The order's row is locked first: shipping and a second return wait here. */
async function open(wish: ReturnOrder, sql: SqlSession): Promise<Return> {
  const { orderNo, returnNo } = wish;
  const text = 'SELECT user_id, sku_id, quantity FROM shop_order WHERE order_no = $1 FOR UPDATE';
  const order = await findOrBringBack(sql, orderNo, () => firstRow(sql, text, [orderNo]));
  if (order === undefined) throw orderNotFound(orderNo);
  if (await isReturned(orderNo, sql)) {
    throw new ShopError('RETURN_CONFLICT', `order ${orderNo} has been returned already`);
  }
  const payment = await firstRow(
    sql,
    'SELECT amount_minor - refunded_minor AS left_minor FROM shop_payment WHERE order_no = $1',
    [orderNo],
  );
  const amountMinor = Number(payment?.['left_minor'] ?? 0);
  if (payment === undefined || amountMinor === 0) {
    throw new ShopError('RETURN_CONFLICT', `order ${orderNo} has no money to give back`);
  }
  // Only CHANNEL refunds are left to the saga; the worker passes by what has this reason.
  const refundNo = refundNoOf(wish);
  const refund = { orderNo, refundNo, amountMinor };
  await bookRefund(refund, 'RETURN', sql);
  await sql.query(
    `INSERT INTO shop_return (order_no, return_no, user_id, sku_id, units, amount_minor, status,
       created_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, 'REFUNDING', ${nowMs(sql)})`,
    [
      orderNo,
      returnNo,
      String(order['user_id']),
      String(order['sku_id']),
      Number(order['quantity']),
      amountMinor,
    ],
  );
  return { ...wish, status: 'REFUNDING', amountMinor };
}

function returnSaga(store: Store, channel: ChannelClient, leaseMs: number) {
  /** Runs `effect` with the move, or finds it done: a step may be told to run again. */
  const step =
    (from: ReturnStatus, to: ReturnStatus, effect: (sql: SqlSession, row: Row) => Promise<void>) =>
    async ({ input }: { readonly input: ReturnOrder }): Promise<void> => {
      await store.database.transaction(async (sql) => {
        if (!(await move(sql, input, from, to))) return;
        await effect(sql, (await rowOf(sql, input)) as Row);
      });
    };
  return defineSaga<Tx, ReturnOrder>({
    name: 'order.return-saga',
    scope: ({ orderNo }) => `order:${orderNo}`,
    key: ({ returnNo }) => returnNo,
    // A channel that does not answer may have paid: never turn back on time or tries alone.
    deadlineMs: 31 * 86_400_000,
    forwardAttemptsMax: 1_000,
    attemptsMax: 100,
    leaseMs,
    steps: [
      {
        name: 'hold', // The refund and its quota are booked with the acceptance.
        do: () => null,
        undo: step('REFUNDING', 'REFUSED', async (sql, { orderNo, refundNo, amountMinor }) => {
          await settleRefund(sql, { orderNo, refundNo }, 'FAILED');
          await giveQuotaBack(sql, { orderNo, refundNo, amountMinor });
        }),
      },
      {
        name: 'refund',
        pivot: true,
        async do({ input }) {
          await payBack(store, channel, input);
          await step('REFUNDING', 'REFUNDED', (sql, row) => settleRefund(sql, row, 'SUCCEEDED'))({
            input,
          });
        },
      },
      {
        name: 'restock',
        do: step('REFUNDED', 'RESTOCKED', async (sql, { skuId, units }) => {
          await sql.query(
            'UPDATE shop_sku SET stock_current = stock_current + $2 WHERE sku_id = $1',
            [skuId, units],
          );
        }),
      },
      {
        name: 'coupon',
        do: step('RESTOCKED', 'COUPON_BACK', giveCouponBack),
      },
      { name: 'notify', do: step('COUPON_BACK', 'DONE', tellCustomer) },
    ],
  });
}

/** Asks the channel under the refund's own number, which stays the same over all attempts. */
async function payBack(store: Store, channel: ChannelClient, wish: ReturnOrder): Promise<void> {
  const refundNo = refundNoOf(wish);
  const { rows } = await store.database.query(
    'SELECT status, payment_no, amount_minor FROM shop_refund WHERE order_no = $1 AND refund_no = $2',
    [wish.orderNo, refundNo],
  );
  const [refund] = rows;
  if (refund?.['status'] !== 'PENDING') return; // From the balance or in cash: done with the acceptance.
  const paid = await channel.refund({
    refundNo: `${wish.orderNo}/${refundNo}`,
    paymentNo: String(refund['payment_no']),
    amountMinor: Number(refund['amount_minor']),
  });
  if (!paid) throw refuse('REFUND_REFUSED', 'the channel does not give the money back');
}

interface Row extends ReturnOrder {
  readonly userId: string;
  readonly skuId: string;
  readonly units: number;
  readonly amountMinor: number;
  readonly refundNo: string;
}

/** Compare and set: true for the one that moved it. */
async function move(
  sql: SqlSession,
  { orderNo, returnNo }: ReturnOrder,
  from: ReturnStatus,
  to: ReturnStatus,
): Promise<boolean> {
  const { affectedRows } = await sql.query(
    'UPDATE shop_return SET status = $4 WHERE order_no = $1 AND return_no = $2 AND status = $3',
    [orderNo, returnNo, from, to],
  );
  return affectedRows > 0;
}

async function rowOf(sql: SqlSession, wish: ReturnOrder): Promise<Row> {
  const row = await firstRow(
    sql,
    `SELECT user_id, sku_id, units, amount_minor FROM shop_return
     WHERE order_no = $1 AND return_no = $2`,
    [wish.orderNo, wish.returnNo],
  );
  return {
    ...wish,
    userId: String(row?.['user_id']),
    skuId: String(row?.['sku_id']),
    units: Number(row?.['units']),
    amountMinor: Number(row?.['amount_minor']),
    refundNo: refundNoOf(wish),
  };
}

async function settleRefund(
  sql: SqlSession,
  { orderNo, refundNo }: { readonly orderNo: string; readonly refundNo: string },
  status: 'SUCCEEDED' | 'FAILED',
): Promise<void> {
  await sql.query(
    `UPDATE shop_refund SET status = $3, attempts = attempts + 1
     WHERE order_no = $1 AND refund_no = $2 AND status = 'PENDING'`,
    [orderNo, refundNo, status],
  );
}

/** The row is the notification, as for paid orders; it commits with the return's end. */
async function tellCustomer(sql: SqlSession, { orderNo, userId }: Row): Promise<void> {
  await sql.query(
    `INSERT INTO shop_notification (order_no, kind, user_id, at_ms)
     VALUES ($1, 'ORDER_RETURNED', $2, ${nowMs(sql)})`,
    [orderNo, userId],
  );
}
