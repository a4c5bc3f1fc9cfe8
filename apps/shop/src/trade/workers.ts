/** What the shop does without being asked: closes due orders, carries refunds out, forgets tokens. */
import type { Logger } from 'pino';
import { createSubmitTokens } from 'turngate/token';
import { type Closing, closeDueOrders } from './closing.ts';
import { carryOutRefunds } from './refund-worker.ts';

const everyMs = 1_000;

/** Running workers. */
export interface Workers {
  /** Ends after the round that runs. */
  stop(): Promise<void>;
}

/** Starts them. Every node runs them; the guarded statements decide who does what. */
export function startWorkers(closing: Closing, logger: Logger): Workers {
  const tokens = createSubmitTokens({ database: closing.store.database });
  const rounds: readonly [string, () => Promise<number>][] = [
    ['closing due orders', () => closeDueOrders(closing)],
    ['refunds', () => carryOutRefunds(closing.store, closing.channel)],
    ['forgetting old submit tokens', () => tokens.purge()],
  ];
  const stops = rounds.map(([name, round]) => repeat(name, round, logger));
  return {
    async stop() {
      await Promise.all(stops.map((stop) => stop()));
    },
  };
}

function repeat(name: string, round: () => Promise<number>, logger: Logger): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let busy = false;
  const tick = async (): Promise<void> => {
    busy = true;
    try {
      const settled = await round();
      if (settled > 0) logger.info({ settled }, name);
    } catch (error) {
      logger.warn({ err: error }, `${name} failed; it is tried again`);
    }
    busy = false;
  };
  const timer = setInterval(() => {
    if (!busy) running = tick();
  }, everyMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
