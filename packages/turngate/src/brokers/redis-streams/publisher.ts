/** Publishing to Redis Streams. */
import { functionOption, knownOptions } from '../../core/option.ts';
import type { Message, Publisher } from '../../message/message.ts';
import { toWire } from '../../message/wire.ts';
import { commandSender, type RedisCommands } from './client.ts';

/** How messages are published. */
export interface RedisStreamPublisherOptions {
  /** Default: the topic. */
  readonly stream?: (message: Message) => string;
}

/** The field of an entry that holds the payload; all other fields are headers. */
export const payloadField = 'payload';

/**
 * Appends with XADD; resolves after the server's answer. Nothing is trimmed: a length limit deletes
 * what was not read yet. Trim below the oldest pending entry yourself.
 *
 * Not promised: that an answered message outlives a crash or a failover of Redis. Without
 * `appendfsync always` up to a second is lost, and replicas follow later.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function redisStreamPublisher(
  client: RedisCommands,
  options: RedisStreamPublisherOptions = {},
): Publisher {
  knownOptions('Redis stream publisher options', options, ['stream']);
  const { stream = ({ topic }: Message) => topic } = options;
  functionOption('stream', stream);
  const send = commandSender(client);
  return {
    async publish(message) {
      const fields = { ...toWire(message), [payloadField]: message.payload };
      await send('XADD', stream(message), '*', ...Object.entries(fields).flat());
    },
  };
}
