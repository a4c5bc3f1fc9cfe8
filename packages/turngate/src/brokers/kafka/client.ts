/** The slice of kafkajs (2.x) that is called. Nothing of it is imported. */

/** A `Producer`, connected. */
export interface KafkaProducer {
  // biome-ignore lint/suspicious/noExplicitAny: client edge.
  send(record: any): Promise<unknown>;
}

/** A record as a consumer gets it. */
export interface KafkaMessage {
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly timestamp: string;
  readonly offset: string;
  readonly headers?: Readonly<Record<string, unknown>>;
}

/** What `consumer.run({ eachMessage })` hands out. */
export interface KafkaEachMessage {
  readonly topic: string;
  readonly partition: number;
  readonly message: KafkaMessage;
}
