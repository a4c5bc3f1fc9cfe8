/** Consuming a RabbitMQ queue: the effect and its mark commit first, then the message is acked. */
import { integerOption, knownOptions, optionError } from '../../core/option.ts';
import { ConsumerLife, type Consuming } from '../../message/consuming.ts';
import type { Inbox } from '../../message/inbox.ts';
import {
  type MessageEffect,
  type RawDelivery,
  type Receive,
  receiver,
  sourceOption,
} from '../../message/receiving.ts';
import { fromWire, wholeNumber } from '../../message/wire.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import { backoffMs, sleep } from '../../runtime/wait.ts';
import type { AmqpChannel, AmqpMessage } from './client.ts';

/** How a queue is consumed. */
export interface AmqpConsumerOptions {
  /**
   * Unacknowledged messages this consumer may hold; so many effects run at once. Bound it by your
   * database connections. 1 on a queue with `x-single-active-consumer` keeps the queue's order,
   * failures included.
   *
   * @unit messages, integer, 1 to 1_000
   * @default 10
   */
  readonly prefetch?: number;
  /** Where message ids are unique. Default: the topic a message names, else the queue's name. */
  readonly source?: string;
  /**
   * Longest pause before a failed message goes back to the queue. It counts against `prefetch`
   * meanwhile: a failing database is not hammered.
   *
   * @unit milliseconds, integer, 1 to 600_000
   * @default 30_000
   */
  readonly backoffCapMs?: number;
  /** Aborting it is `stop()`. */
  readonly signal?: AbortSignal;
  readonly runtime?: Runtime;
}

const known = ['prefetch', 'source', 'backoffCapMs', 'signal', 'runtime'];
const failuresRemembered = 10_000;

/**
 * Subscribes to a queue. Use a channel for this alone: `prefetch` is set on it.
 *
 * - applied and duplicate: ack; the effect threw: back to the queue after a growing pause;
 * - parked, too old, or without a usable `messageId`: rejected, which moves it to the queue's
 *   dead-letter exchange. **Without one RabbitMQ drops it**: give every queue a
 *   `x-dead-letter-exchange`.
 *
 * `ended` tells when the channel was closed or the consumer cancelled (queue deleted, node lost).
 *
 * Not promised: order with more than one unacknowledged message. `redelivered` is the broker's hint;
 * once-only rests on the inbox alone.
 *
 * @throws OPTION_INVALID before any I/O
 */
export async function consumeAmqp<Tx>(
  channel: AmqpChannel,
  queue: string,
  inbox: Inbox<Tx>,
  effect: MessageEffect<Tx, AmqpMessage>,
  options: AmqpConsumerOptions = {},
): Promise<Consuming> {
  knownOptions('AMQP consumer options', options, known);
  if (typeof queue !== 'string' || queue === '') throw optionError('queue', 'a name', queue);
  const prefetch = integerOption('prefetch', options.prefetch, {
    min: 1,
    max: 1_000,
    fallback: 10,
  });
  const consumer = new QueueConsumer(channel, queue, receiver(inbox, effect), options);
  return await consumer.start(prefetch);
}

class QueueConsumer {
  private readonly channel: AmqpChannel;
  private readonly queue: string;
  private readonly receive: Receive<AmqpMessage>;
  private readonly source: string | undefined;
  private readonly pause: { readonly baseMs: number; readonly capMs: number };
  private readonly runtime: Runtime;
  private readonly life: ConsumerLife;
  private readonly failures = new Map<string, number>();
  private consumerTag: string | undefined;

  constructor(
    channel: AmqpChannel,
    queue: string,
    receive: Receive<AmqpMessage>,
    options: AmqpConsumerOptions,
  ) {
    this.channel = channel;
    this.queue = queue;
    this.receive = receive;
    this.source = sourceOption(options.source);
    const range = { min: 1, max: 600_000, fallback: 30_000 };
    const capMs = integerOption('backoffCapMs', options.backoffCapMs, range);
    this.pause = { baseMs: Math.min(200, capMs), capMs };
    this.runtime = options.runtime ?? systemRuntime;
    this.life = new ConsumerLife(queue, options.signal, () => this.cancel());
  }

  async start(prefetch: number): Promise<Consuming> {
    const onClose = (): void => this.life.lose(new Error('the channel was closed'));
    const onError = (error: unknown): void => this.life.lose(error);
    this.channel.on('close', onClose);
    this.channel.on('error', onError);
    const forget = (): void => {
      this.channel.removeListener('close', onClose);
      this.channel.removeListener('error', onError);
    };
    try {
      await this.channel.prefetch(prefetch);
      const onMessage = (message: AmqpMessage | null): void => this.take(message);
      const { consumerTag } = await this.channel.consume(this.queue, onMessage, { noAck: false });
      this.consumerTag = consumerTag;
      if (this.life.over) await this.cancel().catch(() => undefined);
    } catch (error) {
      forget();
      throw error;
    }
    void this.life.ended.then(forget);
    return this.life;
  }

  private async cancel(): Promise<void> {
    if (this.consumerTag !== undefined) await this.channel.cancel(this.consumerTag);
  }

  private take(message: AmqpMessage | null): void {
    if (message === null) {
      this.life.lose(new Error('the broker cancelled the consumer'));
    } else if (this.life.over) {
      // What arrives while stopping goes back unseen.
      this.answer(() => this.channel.nack(message, false, true));
    } else {
      this.life.track(this.handle(message));
    }
  }

  private async handle(message: AmqpMessage): Promise<void> {
    const delivery = this.delivery(message);
    const verdict = await this.receive(delivery);
    const name = `${delivery.source} ${delivery.messageId}`;
    if (verdict.kind === 'again') await this.pauseAfter(name);
    else this.failures.delete(name);
    this.answer(() => {
      if (verdict.kind === 'done') this.channel.ack(message);
      else this.channel.nack(message, false, verdict.kind === 'again');
    });
  }

  private async pauseAfter(name: string): Promise<void> {
    const failures = (this.failures.get(name) ?? 0) + 1;
    if (this.failures.size >= failuresRemembered) this.failures.clear();
    this.failures.set(name, failures);
    const delayMs = backoffMs(this.runtime, failures, this.pause);
    await sleep(this.runtime, delayMs, this.life.signal).catch(() => undefined);
  }

  /** On a closed channel amqplib throws; the broker delivers the message again anyway. */
  private answer(acknowledge: () => void): void {
    try {
      acknowledge();
    } catch (error) {
      this.life.lose(error);
    }
  }

  private delivery(message: AmqpMessage): RawDelivery<AmqpMessage> {
    const { messageId, timestamp, headers } = message.properties;
    const { id, topic, createdMs, ...facts } = fromWire(headers ?? {});
    return {
      ...facts,
      messageId: typeof messageId === 'string' && messageId !== '' ? messageId : id,
      source: this.source ?? topic ?? this.queue,
      createdMs: createdMs ?? timestampMs(timestamp),
      payload: new TextDecoder().decode(message.content),
      redelivered: message.fields.redelivered,
      raw: message,
    };
  }
}

/** AMQP says seconds; senders that write milliseconds are told apart by the size of the number. */
function timestampMs(timestamp: unknown): number | undefined {
  const number = wholeNumber(timestamp);
  if (number === undefined || number === 0) return undefined;
  return number < 100_000_000_000 ? number * 1000 : number;
}
