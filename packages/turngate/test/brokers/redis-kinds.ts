/** Redis Streams and BullMQ for the broker laws. */
import { startRedis, type TestServer } from '@turngate/test-servers';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { bullmqProcessor, bullmqPublisher } from '../../src/brokers/bullmq/index.ts';
import {
  consumeRedisStream,
  type RedisCommands,
  redisStreamPublisher,
} from '../../src/brokers/redis-streams/index.ts';
import { until } from '../support/clock.ts';
import type { BrokerKind, Rig, TestConsumer } from './rig.ts';

let server: TestServer;

async function start(): Promise<void> {
  server = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
}

async function restart(): Promise<void> {
  await server.kill();
  await server.restart();
}

function ioredis(): Redis {
  const client = new Redis(server.url, { maxRetriesPerRequest: null, retryStrategy: () => 100 });
  client.on('error', () => undefined);
  return client;
}

interface OpenClient {
  readonly client: RedisCommands;
  close(): void;
}

type OpenOne = () => Promise<OpenClient>;

const openIoredis: OpenOne = async () => {
  const client = ioredis();
  return { client, close: () => client.disconnect() };
};

const openNodeRedis: OpenOne = async () => {
  const client = createClient({ url: server.url, socket: { reconnectStrategy: 100 } });
  client.on('error', () => undefined);
  await client.connect();
  return { client, close: () => client.destroy() };
};

const stop = async (): Promise<void> => {
  await server.stop();
};

export const redisStreamKinds: readonly BrokerKind[] = (
  [
    ['Redis Streams, ioredis', openIoredis],
    ['Redis Streams, node-redis', openNodeRedis],
  ] as const
).map(([name, open]) => ({
  name,
  program: 'redis-server',
  start,
  stop,
  open: (topic) => openStream(topic, open),
}));

async function openStream(topic: string, open: OpenOne): Promise<Rig> {
  const admin = ioredis();
  const sending = await open();
  let names = 0;
  return {
    publisher: redisStreamPublisher(sending.client),
    async consume(inbox, effect, ordered = false): Promise<TestConsumer> {
      const own = await open();
      const life = await consumeRedisStream(own.client, topic, inbox, effect, {
        group: 'g',
        consumer: `c${++names}`,
        batchEntries: ordered ? 1 : 8,
        takeOverMs: 500,
        blockMs: 100,
        backoffCapMs: 50,
      });
      return {
        async stop() {
          await life.stop();
          own.close();
        },
        async crash() {
          own.close();
        },
      };
    },
    async sendNameless() {
      await admin.xadd(topic, '*', 'payload', '{}');
    },
    deadCount: () => admin.xlen(`${topic}:dead`),
    async openCount() {
      const groups = (await admin.xinfo('GROUPS', topic)) as unknown[][];
      const group = groups[0] ?? [];
      const value = (field: string): number => Number(group[group.indexOf(field) + 1]);
      return value('pending') + value('lag');
    },
    restart,
    async close() {
      sending.close();
      admin.disconnect();
    },
  };
}

export const bullmqKind: BrokerKind = {
  name: 'BullMQ',
  program: 'redis-server',
  unordered: 'a failed job waits while later ones run',
  start,
  stop,
  async open(topic): Promise<Rig> {
    const connection = (): { host: string; port: number; maxRetriesPerRequest: null } => ({
      host: server.host,
      port: server.port,
      maxRetriesPerRequest: null,
    });
    const queue = new Queue(topic, { connection: connection() });
    queue.on('error', () => undefined);
    await queue.waitUntilReady();
    return {
      publisher: bullmqPublisher(queue, { retryMs: 20 }),
      async consume(inbox, effect): Promise<TestConsumer> {
        const worker = new Worker(topic, bullmqProcessor(inbox, effect), {
          connection: connection(),
          concurrency: 8,
          lockDuration: 1_000,
          stalledInterval: 500,
          maxStalledCount: 10,
        });
        worker.on('error', () => undefined);
        await worker.waitUntilReady();
        return {
          stop: () => worker.close(),
          crash: () => worker.close(true),
        };
      },
      async sendNameless() {
        await queue.add('foreign', {});
      },
      deadCount: () => queue.getFailedCount(),
      openCount: () => queue.getJobCountByTypes('waiting', 'active', 'delayed', 'prioritized'),
      async restart() {
        await restart();
        const back = (): Promise<boolean> =>
          queue.getFailedCount().then(
            () => true,
            () => false,
          );
        await until('the broker is back', back, 60_000);
      },
      async close() {
        await queue.close();
      },
    };
  },
};
