/** Publishing to a JetStream stream. */
import { functionOption, integerOption, knownOptions } from '../../core/option.ts';
import type { Message, Publisher } from '../../message/message.ts';
import { toWire } from '../../message/wire.ts';
import type { NatsHeaders, NatsJetStream } from './client.ts';

/** How messages are published. */
export interface NatsPublisherOptions {
  /** `headers` of your NATS client: it makes an empty set of headers. */
  readonly headers: () => NatsHeaders;
  /** Default: the topic. A stream must cover it, else publishing fails. */
  readonly subject?: (message: Message) => string;
  /**
   * How long the stream may take to answer.
   *
   * @unit milliseconds, integer, 100 to 600_000
   * @default 10_000
   */
  readonly ackMs?: number;
}

/**
 * Publishes with `Nats-Msg-Id` and resolves after the stream has stored the message. The server
 * drops a repeat inside its window (2 minutes by default); later ones arrive, and the inbox knows
 * them. The id holds the topic, because ids are unique per topic only.
 *
 * Not promised: that a message arrives once. What "stored" outlives is the stream's `storage` and
 * `num_replicas`.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function natsPublisher(jetstream: NatsJetStream, options: NatsPublisherOptions): Publisher {
  knownOptions('NATS publisher options', options, ['headers', 'subject', 'ackMs']);
  const { headers: empty, subject = ({ topic }: Message) => topic } = options;
  functionOption('headers', empty);
  functionOption('subject', subject);
  const range = { min: 100, max: 600_000, fallback: 10_000 };
  const timeout = integerOption('ackMs', options.ackMs, range);
  return {
    async publish(message) {
      const headers = empty();
      for (const [name, value] of Object.entries(toWire(message))) headers.set(name, value);
      const msgID = `${message.topic}:${message.id}`;
      await jetstream.publish(subject(message), message.payload, { msgID, headers, timeout });
    },
  };
}
