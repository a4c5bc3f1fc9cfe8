/** RabbitMQ through amqplib: a publisher for the relay, a consumer for the inbox. */

export type { AmqpChannel, AmqpConfirmChannel, AmqpMessage } from './client.ts';
export { type AmqpConsumerOptions, consumeAmqp } from './consumer.ts';
export { type AmqpPublisherOptions, amqpPublisher } from './publisher.ts';
