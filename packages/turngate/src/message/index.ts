/** Messages: sent if and only if the transaction commits, consumed once with their effect. */

export type { ConsumerEnd, Consuming } from './consuming.ts';
export {
  type Consumption,
  createInbox,
  type Delivery,
  type Inbox,
  type InboxOptions,
} from './inbox.ts';
export type { Message, Publisher } from './message.ts';
export { createOutbox, type Outbox, type OutgoingMessage } from './outbox.ts';
export type { MessageEffect, ReceivedMessage } from './receiving.ts';
export { createRelay, purgeOutbox, type Relay, type RelayOptions } from './relay.ts';
