/** RabbitMQ for the broker laws. */
import { startRabbitmq, type TestServer } from '@turngate/test-servers';
import { type Channel, type ChannelModel, type ConfirmChannel, connect } from 'amqplib';
import { type AmqpChannel, amqpPublisher, consumeAmqp } from '../../src/brokers/amqp/index.ts';
import { pause, until } from '../support/clock.ts';
import type { BrokerKind, Rig, TestConsumer } from './rig.ts';

let server: TestServer;

async function open(): Promise<ChannelModel> {
  for (let tries = 0; ; tries++) {
    try {
      const model = await connect(server.url);
      model.on('error', () => undefined);
      return model;
    } catch (error) {
      if (tries > 300) throw error;
      await pause(100); // The broker is on its way up.
    }
  }
}

/** A connection to the server of this run. */
export const openAmqp = open;

export const amqpKind: BrokerKind = {
  name: 'RabbitMQ',
  program: 'rabbitmq-server',
  async start() {
    server = await startRabbitmq();
  },
  async stop() {
    await server.stop();
  },
  open: (topic) => openRig(topic),
};

async function openRig(topic: string): Promise<Rig> {
  const dead = `${topic}.dead`;
  let model: ChannelModel | undefined;
  let confirm: ConfirmChannel | undefined;
  let closed = false;
  /** What each consumer has got and not answered: the broker does not tell a client. */
  const holding: Holding = new Map();
  const ready = async (): Promise<ConfirmChannel> => {
    if (confirm !== undefined) return confirm;
    model = await open();
    const channel = await model.createConfirmChannel();
    channel.on('error', () => undefined);
    channel.on('close', () => {
      confirm = undefined;
    });
    await channel.assertQueue(dead, { durable: true });
    await channel.assertQueue(topic, {
      durable: true,
      deadLetterExchange: '',
      deadLetterRoutingKey: dead,
      arguments: { 'x-single-active-consumer': false },
    });
    confirm = channel;
    return channel;
  };
  const count = async (queue: string): Promise<number> =>
    (await (await ready()).checkQueue(queue)).messageCount;
  const publisher = amqpPublisher(() => confirm as ConfirmChannel, { exchange: '' });
  await ready();
  return {
    publisher: {
      async publish(message) {
        await ready();
        await publisher.publish(message);
      },
    },
    async consume(inbox, effect, ordered = false): Promise<TestConsumer> {
      let own: ChannelModel | undefined;
      let live: AmqpChannel | undefined;
      let stopped = false;
      let current: Awaited<ReturnType<typeof consumeAmqp>> | undefined;
      const subscribe = async (): Promise<void> => {
        own = await open();
        const channel = await own.createChannel();
        const mine = counted(channel, holding);
        live = mine;
        const prefetch = ordered ? 1 : 8;
        current = await consumeAmqp(mine, topic, inbox, effect, { prefetch, backoffCapMs: 50 });
        void current.ended.then(({ kind }) => {
          if (kind === 'lost') holding.delete(mine);
          if (kind === 'lost' && !stopped && !closed) void subscribe().catch(() => undefined);
        });
      };
      await subscribe();
      return {
        async stop() {
          stopped = true;
          await current?.stop();
          await own?.close().catch(() => undefined);
        },
        async crash() {
          stopped = true;
          // The broker has what a dead consumer held back again: it counts as queued there.
          if (live !== undefined) holding.delete(live);
          const socket = (own as unknown as { connection: { stream: { destroy(): void } } })
            .connection.stream;
          socket.destroy();
        },
      };
    },
    async sendNameless() {
      (await ready()).sendToQueue(topic, Buffer.from('{}'), { persistent: true });
      await confirm?.waitForConfirms();
    },
    deadCount: () => count(dead),
    openCount: async () =>
      (await count(topic)) + [...holding.values()].reduce((sum, held) => sum + held, 0),
    async restart() {
      await server.kill();
      await server.restart();
      await until('the broker is back', () => ready().then(Boolean, () => false), 60_000);
    },
    async close() {
      closed = true;
      await model?.close().catch(() => undefined);
    },
  };
}

type Holding = Map<AmqpChannel, number>;

function counted(channel: Channel, holding: Holding): AmqpChannel {
  const add = (change: number): void => {
    const held = holding.get(mine);
    if (held !== undefined) holding.set(mine, held + change);
  };
  const mine: AmqpChannel = {
    prefetch: (count) => channel.prefetch(count),
    consume: (queue, onMessage, options) =>
      channel.consume(
        queue,
        (message) => {
          if (message !== null) add(1);
          onMessage(message);
        },
        options,
      ),
    cancel: (tag) => channel.cancel(tag),
    ack(message) {
      add(-1);
      channel.ack(message);
    },
    nack(message, allUpTo, requeue) {
      add(-1);
      channel.nack(message, allUpTo, requeue);
    },
    on: (event, listener) => channel.on(event, listener),
    removeListener: (event, listener) => channel.removeListener(event, listener),
  };
  holding.set(mine, 0);
  return mine;
}
