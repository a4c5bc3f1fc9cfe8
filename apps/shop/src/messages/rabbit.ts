/** RabbitMQ between the outbox and the consumers; a lost connection is opened again, for ever. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Channel, type ChannelModel, type ConfirmChannel, connect } from 'amqplib';
import type { Logger } from 'pino';
import { amqpPublisher, consumeAmqp } from 'turngate/amqp';
import type { Consuming, Publisher } from 'turngate/message';
import type { Consumer } from './consumers.ts';
import { orderPaidTopic } from './order-paid.ts';

/** A connection that comes back. */
export interface Rabbit {
  readonly publisher: Publisher;
  /** Waits for what runs, then closes the connection. Stop the relay before. */
  stop(): Promise<void>;
}

const exchange = 'turngate.shop';
const deadExchange = 'turngate.shop.dead';
const deadQueue = 'turngate.shop.dead';
const prefetch = 2; // Per consumer: each message takes one of the pool's connections.
const connectTimeoutMs = 5_000;
const pauseMs = { first: 200, cap: 5_000 };

/** Connects in the background; until then publishing fails and the relay keeps its messages. */
export function startRabbit(url: string, consumers: readonly Consumer[], logger: Logger): Rabbit {
  const session = new RabbitSession(url, consumers, logger);
  return session;
}

class RabbitSession implements Rabbit {
  readonly publisher: Publisher;
  private readonly url: string;
  private readonly consumers: readonly Consumer[];
  private readonly logger: Logger;
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;
  private channel: ConfirmChannel | undefined;

  constructor(url: string, consumers: readonly Consumer[], logger: Logger) {
    this.url = url;
    this.consumers = consumers;
    this.logger = logger;
    this.publisher = amqpPublisher(() => this.current(), { exchange });
    this.running = this.keepConnected();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private current(): ConfirmChannel {
    if (this.channel === undefined) throw new Error('RabbitMQ is not connected');
    return this.channel;
  }

  private async keepConnected(): Promise<void> {
    let delayMs = pauseMs.first;
    while (!this.stopping.signal.aborted) {
      try {
        await this.session(() => {
          delayMs = pauseMs.first;
        });
      } catch (error) {
        this.logger.warn({ err: error }, 'RabbitMQ is not reachable; it is tried again');
      }
      this.channel = undefined;
      await sleep(delayMs, undefined, { signal: this.stopping.signal }).catch(() => undefined);
      delayMs = Math.min(pauseMs.cap, delayMs * 2);
    }
  }

  /** One connection, until it is lost or the shop stops. */
  private async session(onOpen: () => void): Promise<void> {
    const model = await connect(this.url, { timeout: connectTimeoutMs });
    model.on('error', (error) => this.logger.warn({ err: error }, 'RabbitMQ connection lost'));
    const running: Consuming[] = [];
    try {
      const channel = await model.createConfirmChannel();
      channel.on('error', (error) => this.logger.warn({ err: error }, 'RabbitMQ channel lost'));
      await declare(channel, this.consumers);
      for (const consumer of this.consumers) running.push(await subscribe(model, consumer));
      this.channel = channel;
      onOpen();
      this.logger.info('RabbitMQ connected');
      const lost = new Promise<void>((resolve) => channel.on('close', () => resolve()));
      await Promise.race([lost, this.stopped(), ...running.map(({ ended }) => ended)]);
    } finally {
      this.channel = undefined;
      await Promise.all(running.map((consumer) => consumer.stop()));
      await model.close().catch(() => undefined); // Lost already.
    }
  }

  private stopped(): Promise<void> {
    const { signal } = this.stopping;
    return new Promise((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}

/** Every node declares the same; what is there already stays. */
async function declare(channel: Channel, consumers: readonly Consumer[]): Promise<void> {
  await channel.assertExchange(exchange, 'topic', { durable: true });
  await channel.assertExchange(deadExchange, 'fanout', { durable: true });
  await channel.assertQueue(deadQueue, { durable: true });
  await channel.bindQueue(deadQueue, deadExchange, '');
  for (const { name } of consumers) {
    await channel.assertQueue(name, { durable: true, deadLetterExchange: deadExchange });
    await channel.bindQueue(name, exchange, orderPaidTopic);
  }
}

async function subscribe(model: ChannelModel, consumer: Consumer): Promise<Consuming> {
  const channel = await model.createChannel();
  const { name, inbox, effect } = consumer;
  return await consumeAmqp(channel, name, inbox, effect, { prefetch });
}
