/** Publishing to RabbitMQ with confirms, and with word of what no queue took. */
import { functionOption, integerOption, knownOptions, optionError } from '../../core/option.ts';
import type { Message, Publisher } from '../../message/message.ts';
import { toWire, wireHeaders } from '../../message/wire.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import { waitFor } from '../../runtime/wait.ts';
import type { AmqpConfirmChannel, AmqpMessage } from './client.ts';

/** How messages are published. */
export interface AmqpPublisherOptions {
  /** An existing exchange; `''` is the default exchange, whose routing keys are names of queues. */
  readonly exchange: string;
  /** Default: the topic. */
  readonly routingKey?: (message: Message) => string;
  /**
   * A confirm that takes longer is a failure; the message is sent again under its id. Keep it under
   * half of the relay's `leaseMs`.
   *
   * @unit milliseconds, integer, 100 to 600_000
   * @default 10_000
   */
  readonly confirmMs?: number;
  readonly runtime?: Runtime;
}

const known = ['exchange', 'routingKey', 'confirmMs', 'runtime'];

/**
 * Publishes persistent messages and resolves after the broker's confirm. A message that no queue
 * takes is a failure, though the broker confirms it: `mandatory` makes it come back. Give a function
 * when channels are replaced after a loss: it is asked for the channel of the moment.
 *
 * Not promised: that a message arrives once. A lost confirm sends it again, under the same
 * `messageId`. Classic queues must be durable to outlive a restart.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function amqpPublisher(
  channel: AmqpConfirmChannel | (() => AmqpConfirmChannel),
  options: AmqpPublisherOptions,
): Publisher {
  knownOptions('AMQP publisher options', options, known);
  const { exchange, routingKey = ({ topic }: Message) => topic } = options;
  if (typeof exchange !== 'string') throw optionError('exchange', 'a string', exchange);
  functionOption('routingKey', routingKey);
  const runtime = options.runtime ?? systemRuntime;
  const range = { min: 100, max: 600_000, fallback: 10_000 };
  const limitMs = integerOption('confirmMs', options.confirmMs, range);
  const current = typeof channel === 'function' ? channel : () => channel;
  checkConfirming(typeof channel === 'function' ? undefined : channel);
  const returns = returnWatch();
  return {
    publish(message) {
      const confirmed = new Promise<void>((resolve, reject) => {
        const now = current();
        checkConfirming(now);
        const came = returns.watch(now, message);
        now.publish(
          exchange,
          routingKey(message),
          Buffer.from(message.payload),
          properties(message),
          (error) => {
            // The broker sends a message back before it confirms it.
            const unroutable = came();
            if (error != null) return reject(error);
            if (unroutable) return reject(new Error(`no queue takes topic "${message.topic}"`));
            resolve();
          },
        );
      });
      const onCut = (): Error => new Error(`no confirm within ${limitMs} ms`);
      return waitFor(runtime, confirmed, { limitMs, onCut });
    },
  };
}

function properties(message: Message): Record<string, unknown> {
  return {
    messageId: message.id,
    type: message.topic,
    timestamp: Math.floor(message.createdMs / 1000), // AMQP counts seconds.
    contentType: 'application/json',
    persistent: true,
    mandatory: true,
    headers: toWire(message),
  };
}

function checkConfirming(channel: AmqpConfirmChannel | undefined): void {
  if (channel === undefined || typeof channel.waitForConfirms === 'function') return;
  // On an ordinary channel the callback is never called, or called before anything is safe.
  throw optionError('channel', 'a confirm channel (createConfirmChannel)', channel);
}

/** Notes which messages came back; one listener per channel. */
function returnWatch(): { watch(channel: AmqpConfirmChannel, message: Message): () => boolean } {
  const watched = new WeakMap<AmqpConfirmChannel, Set<string>>();
  const returned = (channel: AmqpConfirmChannel): Set<string> => {
    const there = watched.get(channel);
    if (there !== undefined) return there;
    const names = new Set<string>();
    watched.set(channel, names);
    channel.on('return', ({ properties: { messageId, headers } }: AmqpMessage) => {
      names.add(`${String(headers?.[wireHeaders.topic])} ${String(messageId)}`);
    });
    return names;
  };
  return {
    watch(channel, { topic, id }) {
      const names = returned(channel);
      return () => names.delete(`${topic} ${id}`);
    },
  };
}
