/** NATS JetStream: a publisher for the relay, a consumer for the inbox. */

export type {
  NatsConsumer,
  NatsHeaders,
  NatsJetStream,
  NatsMessage,
  NatsMessages,
} from './client.ts';
export { consumeNats, type NatsConsumerOptions } from './consumer.ts';
export { type NatsPublisherOptions, natsPublisher } from './publisher.ts';
