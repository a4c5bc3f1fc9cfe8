/** Publishing as jobs of a BullMQ queue. */
import { integerOption, knownOptions } from '../../core/option.ts';
import type { Publisher } from '../../message/message.ts';
import type { BullmqQueue } from './client.ts';

/** How jobs are added. */
export interface BullmqPublisherOptions {
  /**
   * Tries of a job before it is failed for good. A failing database uses them up too: this many
   * times `retryMs` is the outage that is survived without a word from an operator.
   *
   * @unit tries, integer, 1 to 1_000_000
   * @default 1_000
   */
  readonly attempts?: number;
  /**
   * Pause before the next try, with jitter. It does not grow: BullMQ doubles without a ceiling.
   *
   * @unit milliseconds, integer, 1 to 600_000
   * @default 5_000
   */
  readonly retryMs?: number;
}

/**
 * Adds one job per message, named by its topic, with the message as its data. No `jobId` is given:
 * BullMQ ignores an id it still knows, in whatever state that job is, and accepts it again once that
 * job was removed. It would dedupe the adding, not the processing; the inbox dedupes the processing.
 *
 * Not promised: order over failures or with several workers, and more than Redis keeps.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function bullmqPublisher(
  queue: BullmqQueue,
  options: BullmqPublisherOptions = {},
): Publisher {
  knownOptions('BullMQ publisher options', options, ['attempts', 'retryMs']);
  const number = (option: 'attempts' | 'retryMs', max: number, fallback: number): number =>
    integerOption(option, options[option], { min: 1, max, fallback });
  const attempts = number('attempts', 1_000_000, 1_000);
  const delay = number('retryMs', 600_000, 5_000);
  const jobOptions = {
    attempts,
    backoff: { type: 'fixed', delay, jitter: 0.5 },
    removeOnComplete: { count: 1_000 },
  };
  return {
    async publish(message) {
      await queue.add(message.topic, message, jobOptions);
    },
  };
}
