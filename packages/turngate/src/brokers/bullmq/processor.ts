/** Processing BullMQ jobs through the inbox. */
import { functionOption, knownOptions } from '../../core/option.ts';
import type { Inbox } from '../../message/inbox.ts';
import { type MessageEffect, receiver, sourceOption } from '../../message/receiving.ts';
import { wholeNumber } from '../../message/wire.ts';
import type { BullmqJob } from './client.ts';

/** How jobs are read. */
export interface BullmqProcessorOptions<Job extends BullmqJob = BullmqJob> {
  /**
   * The message id of jobs that `bullmqPublisher` did not add. Not `job.id`: after a removal or an
   * emptied Redis the same id is another job, which would be taken for a repeat.
   */
  readonly messageId?: (job: Job) => string | undefined;
  /** Where message ids are unique. Default: the topic a message names, else the queue's name. */
  readonly source?: string;
}

/**
 * A processor: `new Worker(name, bullmqProcessor(inbox, effect), { connection, concurrency })`. The
 * worker stays yours: `concurrency` bounds what runs, `worker.close()` waits for it, its `error` and
 * `closed` events tell its loss.
 *
 * - applied: the job completes with what the effect returned; a duplicate completes with nothing;
 * - the effect threw: the job fails and is tried again by its own `attempts` and `backoff`. A job that
 *   was added without them is not tried again;
 * - parked, too old, or without a usable id: fails for good and stays in the failed set.
 *
 * A stalled job runs in two workers at once by BullMQ's design; the inbox lets one of them commit.
 *
 * @throws OPTION_INVALID before any I/O
 */
export function bullmqProcessor<Tx, Job extends BullmqJob = BullmqJob>(
  inbox: Inbox<Tx>,
  effect: MessageEffect<Tx, Job>,
  options: BullmqProcessorOptions<Job> = {},
): (job: Job) => Promise<unknown> {
  knownOptions('BullMQ processor options', options, ['messageId', 'source']);
  const source = sourceOption(options.source);
  const { messageId = idOf } = options;
  functionOption('messageId', messageId);
  const receive = receiver(inbox, effect);
  return async (job) => {
    const message = membersOf(job.data);
    const verdict = await receive({
      messageId: messageId(job),
      source: source ?? text(message['topic']) ?? job.queueName,
      key: text(message['key']),
      sequence: wholeNumber(message['sequence']),
      createdMs: wholeNumber(message['createdMs']),
      payload: text(message['payload']) ?? JSON.stringify(job.data),
      headers: membersOf(message['headers']) as Record<string, string>,
      redelivered: job.attemptsStarted !== 1,
      raw: job,
    });
    if (verdict.kind === 'done') return verdict.value;
    if (verdict.kind === 'again') throw verdict.error;
    const error = new Error(verdict.reason);
    error.name = 'UnrecoverableError'; // What BullMQ knows it by.
    throw error;
  };
}

const idOf = ({ data }: BullmqJob): string | undefined => text(membersOf(data)['id']);

const membersOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

const text = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;
