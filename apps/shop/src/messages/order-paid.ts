/** What the shop tells others about a paid order: written with the payment, sent after its commit. */
import type { SqlSession } from 'turngate/contract';
import { createOutbox, type ReceivedMessage } from 'turngate/message';

/** The topic, and where its message ids are unique. */
export const orderPaidTopic = 'order.paid';

/** What the message says. */
export interface OrderPaid {
  readonly orderNo: string;
  readonly userId: string;
  readonly amountMinor: number;
}

const outbox = createOutbox();

/** An order is paid once, so its number is the message's id for ever. */
export async function tellOrderPaid(sql: SqlSession, paid: OrderPaid): Promise<void> {
  const { orderNo } = paid;
  await outbox.add(sql, { topic: orderPaidTopic, key: orderNo, id: orderNo, payload: paid });
}

/** Reads the message; one that says something else throws, again and again, and ends up parked. */
export function orderPaidOf({ payload }: ReceivedMessage): OrderPaid {
  const { orderNo, userId, amountMinor } = JSON.parse(payload) as Partial<OrderPaid>;
  if (
    typeof orderNo !== 'string' ||
    typeof userId !== 'string' ||
    !Number.isSafeInteger(amountMinor)
  ) {
    throw new TypeError(`a message of topic ${orderPaidTopic} without order, customer or amount`);
  }
  return { orderNo, userId, amountMinor: amountMinor as number };
}
