/**
 * Closes orders whose time to pay is over. Any number of nodes may do it at once: each step is a
 * guarded move. CLOSING first, then the channel is asked to close the payment; if the customer has
 * paid after all, the order is paid.
 */
import type { ChannelClient, PaymentFacts, PaymentState } from '../channel/client.ts';
import { giveUnitBack } from './activity-stock.ts';
import type { Callback, PaymentCallback } from './callback.ts';
import { orderFlow } from './order-flow.ts';
import { nowMs, type Store } from './store.ts';

const batchRows = 50;

/** What closing needs. */
export interface Closing {
  readonly store: Store;
  readonly channel: ChannelClient;
  readonly callback: Callback;
}

/** One round over the due orders; returns how many were settled. */
export async function closeDueOrders(closing: Closing): Promise<number> {
  const { database } = closing.store;
  const clock = nowMs(database);
  const { rows } = await database.query(
    `SELECT order_no FROM shop_order
     WHERE status IN ('PENDING_PAY', 'CLOSING') AND due_at_ms <= ${clock}
     ORDER BY due_at_ms LIMIT ${batchRows}`,
    [],
  );
  let settled = 0;
  for (const { order_no: orderNo } of rows) {
    if (await closeOrder(closing, String(orderNo))) settled++;
  }
  return settled;
}

/** False when it has to be tried again: the channel did not answer. */
async function closeOrder(closing: Closing, orderNo: string): Promise<boolean> {
  const { database } = closing.store;
  await database.transaction(async (sql) => {
    await orderFlow.fire('expire', { tx: sql, id: orderNo });
  });
  // Without a channel to ask, only callbacks tell; one that comes too late is sent back.
  const open = closing.channel.reachable ? await openPayments(closing.store, orderNo) : [];
  for (const payment of open) {
    const state = await closing.channel.close(payment).catch(() => undefined);
    if (state === undefined) return false;
    if (state.status === 'SUCCESS') {
      await closing.callback(asCallback(payment, state)); // Moves CLOSING to PAID.
      return true;
    }
  }
  await database.transaction(async (sql) => {
    const move = await orderFlow.fire('close', { tx: sql, id: orderNo });
    if (move.kind === 'applied') await giveUnitBack(orderNo, sql);
  });
  return true;
}

/** Attempts that may still turn into money. */
async function openPayments(store: Store, orderNo: string): Promise<readonly PaymentFacts[]> {
  const { rows } = await store.database.query(
    `SELECT payment_no, amount_minor, currency FROM shop_payment_attempt
     WHERE order_no = $1 AND status <> 'SUCCESS'`,
    [orderNo],
  );
  return rows.map((row) => ({
    orderNo,
    paymentNo: String(row['payment_no']),
    amountMinor: Number(row['amount_minor']),
    currency: String(row['currency']),
  }));
}

/** What was asked counts like what was told; the attempt's own guard makes it happen once. */
function asCallback(payment: PaymentFacts, state: PaymentState): PaymentCallback {
  return {
    eventId: `query-${payment.paymentNo}`,
    ...payment,
    tradeNo: state.tradeNo ?? '',
    status: 'SUCCESS',
    paidAt: state.at ?? '',
  };
}
