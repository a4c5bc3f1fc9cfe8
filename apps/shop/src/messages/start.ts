/** Messages of the shop: the relay, and the consumers behind a broker or right here. */
import type { Logger } from 'pino';
import type { SqlDatabase } from 'turngate/contract';
import { createRelay, purgeOutbox } from 'turngate/message';
import type { Tx } from '../trade/store.ts';
import { shopConsumers } from './consumers.ts';
import { inProcessPublisher } from './in-process.ts';
import { startRabbit } from './rabbit.ts';

/** Running messages. */
export interface Messages {
  /** Ends after what is being sent and consumed. */
  stop(): Promise<void>;
}

const relayEveryMs = 250;
const purgeEveryMs = 600_000;
const sentKeptMs = 7 * 86_400_000;

/** Every node runs it: lanes are leased, and the inboxes let each effect happen once. */
export function startMessages(
  database: SqlDatabase<Tx>,
  amqpUrl: string | undefined,
  logger: Logger,
): Messages {
  const consumers = shopConsumers(database);
  const rabbit = amqpUrl === undefined ? undefined : startRabbit(amqpUrl, consumers, logger);
  const publisher = rabbit?.publisher ?? inProcessPublisher(consumers);
  const relay = createRelay({ database, publisher });
  relay.start(relayEveryMs);
  const purge = (): void => {
    const all = [purgeOutbox(database, sentKeptMs), ...consumers.map(({ inbox }) => inbox.purge())];
    Promise.all(all).catch((error: unknown) => {
      logger.warn({ err: error }, 'forgetting old messages failed; it is tried again');
    });
  };
  const timer = setInterval(purge, purgeEveryMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await relay.stop();
      await rabbit?.stop();
    },
  };
}
