/** Consuming a JetStream pull consumer: the effect and its mark commit first, then the message is acked. */
import { integerOption, knownOptions } from '../../core/option.ts';
import { ConsumerLife, type Consuming } from '../../message/consuming.ts';
import type { Inbox } from '../../message/inbox.ts';
import {
  type MessageEffect,
  type RawDelivery,
  type Receive,
  receiver,
  sourceOption,
} from '../../message/receiving.ts';
import { fromWire } from '../../message/wire.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import { backoffMs } from '../../runtime/wait.ts';
import type { NatsConsumer, NatsHeaders, NatsMessage, NatsMessages } from './client.ts';

/** How a consumer's messages are handled. */
export interface NatsConsumerOptions {
  /**
   * Effects that run at once. For order, 1 does not suffice: give the durable consumer
   * `max_ack_pending: 1`, which also holds over several processes and over failures.
   *
   * @unit messages, integer, 1 to 1_000
   * @default 10
   */
  readonly concurrency?: number;
  /** Where message ids are unique. Default: the topic a message names, else the stream's name. */
  readonly source?: string;
  /**
   * A running effect asks the server for more time so often; under the consumer's `ack_wait`.
   *
   * @unit milliseconds, integer, 100 to 600_000
   * @default 10_000
   */
  readonly workingEveryMs?: number;
  /**
   * Longest pause before a failed message comes again.
   *
   * @unit milliseconds, integer, 1 to 600_000
   * @default 30_000
   */
  readonly backoffCapMs?: number;
  /** Aborting it is `stop()`. */
  readonly signal?: AbortSignal;
  readonly runtime?: Runtime;
}

const known = ['concurrency', 'source', 'workingEveryMs', 'backoffCapMs', 'signal', 'runtime'];

/**
 * Consumes a durable pull consumer with explicit acks.
 *
 * - applied and duplicate: acked, and the server's answer to the ack is waited for;
 * - the effect threw: comes again after a growing pause. Leave the consumer's `max_deliver`
 *   unlimited, or above the inbox's `startsMax`: beyond it the server gives up in silence;
 * - parked, too old, or without a usable id: `term`. The server tells it in an advisory; the message
 *   stays in a stream with limits retention.
 *
 * A message without Turngate's id counts by its `Nats-Msg-Id`. The client reconnects by itself;
 * `ended` tells when it gave up, the consumer was deleted or the connection was closed.
 *
 * @throws OPTION_INVALID before any I/O
 */
export async function consumeNats<Tx>(
  consumer: NatsConsumer,
  inbox: Inbox<Tx>,
  effect: MessageEffect<Tx, NatsMessage>,
  options: NatsConsumerOptions = {},
): Promise<Consuming> {
  knownOptions('NATS consumer options', options, known);
  const receive = receiver(inbox, effect);
  const loop = new PullLoop(receive, options);
  return await loop.start(consumer);
}

class PullLoop {
  private readonly receive: Receive<NatsMessage>;
  private readonly concurrency: number;
  private readonly source: string | undefined;
  private readonly workingEveryMs: number;
  private readonly pause: { readonly baseMs: number; readonly capMs: number };
  private readonly runtime: Runtime;
  private readonly signal: AbortSignal | undefined;

  constructor(receive: Receive<NatsMessage>, options: NatsConsumerOptions) {
    const number = (
      option: 'concurrency' | 'workingEveryMs' | 'backoffCapMs',
      min: number,
      max: number,
      fallback: number,
    ): number => integerOption(option, options[option], { min, max, fallback });
    this.receive = receive;
    this.concurrency = number('concurrency', 1, 1_000, 10);
    this.workingEveryMs = number('workingEveryMs', 100, 600_000, 10_000);
    const capMs = number('backoffCapMs', 1, 600_000, 30_000);
    this.pause = { baseMs: Math.min(200, capMs), capMs };
    this.source = sourceOption(options.source);
    this.runtime = options.runtime ?? systemRuntime;
    this.signal = options.signal;
  }

  async start(consumer: NatsConsumer): Promise<Consuming> {
    const messages = await consumer.consume({ max_messages: this.concurrency });
    const source = this.source ?? 'nats';
    const life = new ConsumerLife(source, this.signal, async () => {
      await messages.close();
    });
    this.drain(messages, life).then(
      () => life.lose(new Error('the consumer ended')),
      (error: unknown) => life.lose(error),
    );
    return life;
  }

  private async drain(messages: NatsMessages, life: ConsumerLife): Promise<void> {
    for await (const message of messages) {
      if (life.over) {
        message.nak();
        continue;
      }
      life.track(this.handle(message));
      while (life.runningCount >= this.concurrency) await life.oneEnded();
    }
  }

  private async handle(message: NatsMessage): Promise<void> {
    const working = this.keepWorking(message);
    const verdict = await this.receive(this.delivery(message));
    working.stop();
    try {
      if (verdict.kind === 'done') await message.ackAck();
      // Without the reason: servers before 2.10 ignore a `term` that has one.
      else if (verdict.kind === 'dead') message.term();
      else message.nak(backoffMs(this.runtime, message.info.deliveryCount, this.pause));
    } catch {
      // No answer to the ack, or no connection: it comes again and is a duplicate.
    }
  }

  private keepWorking(message: NatsMessage): { stop(): void } {
    const { runtime, workingEveryMs } = this;
    const tick = (): void => {
      try {
        message.working();
      } catch {
        // The connection is closed; nothing to keep.
      }
      timer = runtime.timer(workingEveryMs, false, tick);
    };
    let timer = runtime.timer(workingEveryMs, false, tick);
    return { stop: () => timer.cancel() };
  }

  private delivery(message: NatsMessage): RawDelivery<NatsMessage> {
    const { id, topic, ...facts } = fromWire(headersOf(message));
    return {
      ...facts,
      messageId: id ?? (message.headers?.last('Nats-Msg-Id') || undefined),
      source: this.source ?? topic ?? message.info.stream,
      payload: new TextDecoder().decode(message.data),
      redelivered: message.info.deliveryCount > 1,
      raw: message,
    };
  }
}

function headersOf({ headers }: NatsMessage): Record<string, string> {
  const set = headers as NatsHeaders | undefined;
  return Object.fromEntries((set?.keys() ?? []).map((name) => [name, set?.last(name) ?? '']));
}
