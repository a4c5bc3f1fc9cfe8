/** Kafka through kafkajs. Written to its documented API; not run against a broker. */

export type { KafkaEachMessage, KafkaMessage, KafkaProducer } from './client.ts';
export { type KafkaConsumerOptions, kafkaEachMessage } from './consumer.ts';
export { type KafkaPublisherOptions, kafkaPublisher } from './publisher.ts';
