/** Publishing to Kafka. */
import { functionOption, knownOptions } from '../../core/option.ts';
import type { Message, Publisher } from '../../message/message.ts';
import { toWire } from '../../message/wire.ts';
import type { KafkaProducer } from './client.ts';

/** How records are sent. */
export interface KafkaPublisherOptions {
  /** The Kafka topic. Default: the message's topic with `:` and `/` as `.`, which Kafka does not take. */
  readonly topic?: (message: Message) => string;
}

/**
 * Sends with `acks: -1`: resolves after all in-sync replicas have the record. The message's key is
 * the record's key, so that one key is one partition and keeps its order.
 *
 * Not promised: that a record arrives once, also with an idempotent producer: a relay that restarts
 * is a new producer. How many replicas "in sync" means is the topic's `min.insync.replicas`. **Not
 * run against a real broker.**
 *
 * @throws OPTION_INVALID before any I/O
 */
export function kafkaPublisher(
  producer: KafkaProducer,
  options: KafkaPublisherOptions = {},
): Publisher {
  knownOptions('Kafka publisher options', options, ['topic']);
  const { topic = (message: Message) => message.topic.replace(/[:/]/g, '.') } = options;
  functionOption('topic', topic);
  return {
    async publish(message) {
      const { key = null, payload, createdMs } = message;
      const timestamp = String(createdMs);
      const record = { key, value: payload, headers: toWire(message), timestamp };
      await producer.send({ topic: topic(message), acks: -1, messages: [record] });
    },
  };
}
