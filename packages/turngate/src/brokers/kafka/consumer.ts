/** Consuming Kafka records through the inbox: the offset follows the commit. */
import { functionOption, knownOptions } from '../../core/option.ts';
import type { Inbox } from '../../message/inbox.ts';
import { type MessageEffect, receiver, sourceOption } from '../../message/receiving.ts';
import { fromWire, wholeNumber } from '../../message/wire.ts';
import type { KafkaEachMessage, KafkaMessage } from './client.ts';

/** How records are read. */
export interface KafkaConsumerOptions {
  /**
   * Takes what cannot be consumed: parked, too old, without a usable id. Kafka has no place for it;
   * produce it to a topic of your own. The offset moves on after it resolves; when it throws, the
   * record comes again.
   */
  readonly deadLetter: (record: KafkaEachMessage, reason: string) => Promise<void>;
  /** Where message ids are unique. Default: the topic a message names, else the Kafka topic. */
  readonly source?: string;
}

/**
 * A handler: `consumer.run({ eachMessage: kafkaEachMessage(inbox, effect, { deadLetter }) })`. The
 * consumer stays yours: `partitionsConsumedConcurrently` bounds what runs, `consumer.stop()` waits
 * for it, its `consumer.crash` event tells its loss.
 *
 * - applied and duplicate: the handler returns and kafkajs moves the offset on;
 * - the effect threw: the handler throws; kafkajs retries and blocks the partition meanwhile, so that
 *   the order of a key holds;
 * - a rebalance while an effect runs lets two consumers run it; the inbox lets one commit.
 *
 * A record without Turngate's id header goes to `deadLetter`; its position (topic, partition, offset)
 * is no id, because a message sent twice has two. **Not run against a real broker.**
 *
 * @throws OPTION_INVALID before any I/O
 */
export function kafkaEachMessage<Tx>(
  inbox: Inbox<Tx>,
  effect: MessageEffect<Tx, KafkaMessage>,
  options: KafkaConsumerOptions,
): (record: KafkaEachMessage) => Promise<void> {
  knownOptions('Kafka consumer options', options, ['deadLetter', 'source']);
  functionOption('deadLetter', options.deadLetter);
  const fixed = sourceOption(options.source);
  const receive = receiver(inbox, effect);
  return async (record) => {
    const { topic, message } = record;
    const { id, topic: named, createdMs, ...facts } = fromWire(message.headers ?? {});
    const verdict = await receive({
      ...facts,
      messageId: id,
      source: fixed ?? named ?? topic,
      createdMs: createdMs ?? wholeNumber(message.timestamp),
      payload: message.value === null ? '' : new TextDecoder().decode(message.value),
      redelivered: undefined, // Kafka does not say; a rebalance repeats.
      raw: message,
    });
    if (verdict.kind === 'again') throw verdict.error;
    if (verdict.kind === 'dead') await options.deadLetter(record, verdict.reason);
  };
}
