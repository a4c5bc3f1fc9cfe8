/** A delivery in the form in which the shop's effects take it. */
import type { ReceivedMessage } from 'turngate/message';
import { orderPaidTopic } from '../../../messages/order-paid.ts';
import type { Delivered } from './terms.ts';

export function receivedOf({ messageId, payload }: Delivered): ReceivedMessage {
  return {
    messageId,
    source: orderPaidTopic,
    key: messageId,
    sequence: undefined,
    createdMs: undefined,
    payload,
    headers: {},
    raw: payload,
  };
}
