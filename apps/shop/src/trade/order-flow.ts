/** The life of an order. */
import { defineFlow } from 'turngate';
import type { SqlSession } from 'turngate/contract';
import { findOrBringBack } from './archive.ts';
import { ShopError } from './shop-error.ts';

/** Names an order. */
export interface OrderRef {
  readonly orderNo: string;
}

/**
 * Money moves an order forward once; nothing leads back. CLOSING is the time in which the channel is
 * asked whether the customer has paid after all: only then may the order close.
 */
export const orderFlow = defineFlow(
  {
    name: 'order',
    table: 'shop_order',
    idColumn: 'order_no',
    states: ['PENDING_PAY', 'PAID', 'SHIPPED', 'COMPLETED', 'CLOSING', 'CLOSED', 'CANCELLED'],
    transitions: {
      pay: { from: ['PENDING_PAY', 'CLOSING'], to: 'PAID' },
      ship: { from: ['PAID'], to: 'SHIPPED' },
      complete: { from: ['SHIPPED'], to: 'COMPLETED' },
      cancel: { from: ['PENDING_PAY'], to: 'CANCELLED' },
      expire: { from: ['PENDING_PAY'], to: 'CLOSING' },
      close: { from: ['PENDING_PAY', 'CLOSING'], to: 'CLOSED' },
    },
  },
  (sql: SqlSession) => sql,
);

type OrderEvent = Parameters<typeof orderFlow.fire>[0];

/**
 * Moves an order, or finds it moved already.
 *
 * @throws ORDER_NOT_FOUND, ORDER_STATE_CONFLICT
 */
export async function fireOrder(
  event: OrderEvent,
  orderNo: string,
  sql: SqlSession,
): Promise<'applied' | 'already'> {
  const move = await findOrBringBack(sql, orderNo, async () => {
    const fired = await orderFlow.fire(event, { tx: sql, id: orderNo });
    return fired.kind === 'missing' ? undefined : fired;
  });
  if (move === undefined) throw orderNotFound(orderNo);
  if (move.kind === 'refused') {
    const message = `order ${orderNo} is ${move.state}; "${event}" is not possible`;
    throw new ShopError('ORDER_STATE_CONFLICT', message, { orderStatus: move.state });
  }
  return move.kind;
}

/** The answer for an order nobody knows. */
export function orderNotFound(orderNo: string): ShopError {
  return new ShopError('ORDER_NOT_FOUND', `there is no order ${orderNo}`);
}
