/** The slice of `@nats-io/jetstream` (3.x) that is called. Nothing of it is imported. */

/** Headers of a message, as `headers()` of the client makes them. */
export interface NatsHeaders {
  keys(): string[];
  last(name: string): string;
  set(name: string, value: string): void;
}

/** A JetStream client: `jetstream(connection)`. */
export interface NatsJetStream {
  // biome-ignore lint/suspicious/noExplicitAny: the client's options hold its own header type.
  publish(subject: string, payload: string, options: any): Promise<unknown>;
}

/** A message of a pull consumer. */
export interface NatsMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  // biome-ignore lint/suspicious/noExplicitAny: the client's header type has wider signatures.
  readonly headers?: any;
  readonly info: { readonly stream: string; readonly deliveryCount: number };
  ackAck(): Promise<boolean>;
  nak(delayMs?: number): void;
  term(): void;
  working(): void;
}

/** Messages as they come in. */
export interface NatsMessages extends AsyncIterable<NatsMessage> {
  close(): Promise<unknown>;
}

/** A pull consumer: `jetstream(connection).consumers.get(stream, durable)`. */
export interface NatsConsumer {
  // biome-ignore lint/suspicious/noExplicitAny: client edge.
  consume(options: any): Promise<NatsMessages>;
}
