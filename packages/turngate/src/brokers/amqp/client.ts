/** The slice of amqplib (2.x, promise API) that is called. Nothing of it is imported. */

/** What a channel tells about a delivery. */
export interface AmqpMessage {
  readonly content: Uint8Array;
  readonly fields: { readonly redelivered: boolean; readonly routingKey: string };
  readonly properties: {
    readonly messageId?: unknown;
    readonly timestamp?: unknown;
    readonly headers?: Readonly<Record<string, unknown>> | undefined;
  };
}

/** A channel that consumes. */
export interface AmqpChannel {
  prefetch(count: number): Promise<unknown>;
  consume(
    queue: string,
    // biome-ignore lint/suspicious/noExplicitAny: the client's own message type.
    onMessage: (message: any) => void,
    options: { noAck: false },
  ): Promise<{ readonly consumerTag: string }>;
  cancel(consumerTag: string): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: the client's own message type.
  ack(message: any): void;
  // biome-ignore lint/suspicious/noExplicitAny: the client's own message type.
  nack(message: any, allUpTo: boolean, requeue: boolean): void;
  // biome-ignore lint/suspicious/noExplicitAny: emitter edge.
  on(event: string, listener: (...args: any[]) => void): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: emitter edge.
  removeListener(event: string, listener: (...args: any[]) => void): unknown;
}

/** A channel in confirm mode: `createConfirmChannel()`. */
export interface AmqpConfirmChannel {
  publish(
    exchange: string,
    routingKey: string,
    // biome-ignore lint/suspicious/noExplicitAny: amqplib wants a Buffer.
    content: any,
    options: Record<string, unknown>,
    // biome-ignore lint/suspicious/noExplicitAny: client edge.
    confirmed: (error: any) => void,
  ): boolean;
  waitForConfirms(): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: emitter edge.
  on(event: string, listener: (...args: any[]) => void): unknown;
}
