/** NATS JetStream for the broker laws. */
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, headers, type NatsConnection, nanos } from '@nats-io/transport-node';
import { startNats, type TestServer } from '@turngate/test-servers';
import { consumeNats, natsPublisher } from '../../src/brokers/nats/index.ts';
import { until } from '../support/clock.ts';
import type { BrokerKind, Rig, TestConsumer } from './rig.ts';

let server: TestServer;

const open = (): Promise<NatsConnection> =>
  connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 });

export const natsKind: BrokerKind = {
  name: 'NATS JetStream',
  program: 'nats-server',
  async start() {
    server = await startNats();
  },
  async stop() {
    await server.stop();
  },
  open: (topic) => openRig(topic),
};

async function openRig(topic: string): Promise<Rig> {
  const connection = await open();
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: topic, subjects: [topic] });
  const durable = async (name: string, ordered: boolean): Promise<void> => {
    await manager.consumers.add(topic, {
      durable_name: name,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(1_000),
      ...(ordered ? { max_ack_pending: 1 } : {}),
    });
  };
  const terminated: string[] = [];
  const advisories = connection.subscribe(`$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.${topic}.>`, {
    callback: (_error, message) => void terminated.push(message.string()),
  });
  await connection.flush();
  let name: string | undefined;
  return {
    publisher: natsPublisher(jetstream(connection), { headers, ackMs: 1_000 }),
    async consume(inbox, effect, ordered = false): Promise<TestConsumer> {
      if (name === undefined) {
        name = 'worker';
        await durable(name, ordered);
      }
      const own = await open();
      const consumer = await jetstream(own).consumers.get(topic, name);
      const life = await consumeNats(consumer, inbox, effect, {
        concurrency: ordered ? 1 : 8,
        backoffCapMs: 50,
        workingEveryMs: 300,
      });
      return {
        async stop() {
          await life.stop();
          await own.close();
        },
        async crash() {
          await own.close();
        },
      };
    },
    async sendNameless() {
      await jetstream(connection).publish(topic, '{}');
    },
    deadCount: async () => terminated.length,
    async openCount() {
      if (name === undefined) return (await manager.streams.info(topic)).state.messages;
      const info = await manager.consumers.info(topic, name);
      return info.num_pending + info.num_ack_pending;
    },
    async restart() {
      await server.kill();
      await server.restart();
      const back = (): Promise<boolean> =>
        manager.streams.info(topic).then(
          () => true,
          () => false,
        );
      await until('the broker is back', back, 60_000);
    },
    async close() {
      advisories.unsubscribe();
      await connection.close();
    },
  };
}
