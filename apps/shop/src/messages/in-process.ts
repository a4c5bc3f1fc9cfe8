/** The relay's publisher when there is no broker: hands each message to the consumers right here. */
import type { Message, Publisher } from 'turngate/message';
import type { Consumer } from './consumers.ts';

/** Resolves after every consumer has consumed it; one that fails makes the relay send it again. */
export function inProcessPublisher(consumers: readonly Consumer[]): Publisher {
  return {
    async publish(message) {
      for (const consumer of consumers) await hand(message, consumer);
    },
  };
}

async function hand(message: Message, { inbox, effect }: Consumer): Promise<void> {
  const { id, topic, createdMs } = message;
  const received = { ...message, messageId: id, source: topic, raw: message };
  const delivery = { messageId: id, source: topic, createdMs };
  await inbox.consume(delivery, (sql, tx) => effect(received, sql, tx));
}
