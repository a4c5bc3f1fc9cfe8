/** Clients that hang up before the server is done, and ask again. */
import type { Stage } from '../stage.ts';
import { type Storm, slowWorkMs } from './storm.ts';

const hangUpMs = 150;
const triesMax = 5;
const pauseMs = { min: 20, max: 60 };

export const retryStorm: Storm = {
  title: 'retry storm',
  story: 'Clients hang up after 150 ms and retry with the same key; the servers need 400 ms.',
  run: (stage) => retry(stage, () => 'intent'),
};

export const retryStormNewKey: Storm = {
  title: 'retry storm, new key',
  story: 'The same retries, made by a client that gives each attempt a key of its own.',
  alongside: true,
  run: (stage) => retry(stage, (attempt) => `attempt-${attempt}`),
};

async function retry(stage: Stage, keyOf: (attempt: number) => string): Promise<void> {
  const orders = await stage.openOrders(stage.quick ? 3 : 6);
  await Promise.all(
    orders.map((orderNo, i) =>
      stage.askUntilSettled(
        (attempt) => ({
          orderNo,
          requestKey: `${orderNo}/${keyOf(attempt)}`,
          // A load balancer sends a retry somewhere else.
          server: i + attempt,
          workMs: slowWorkMs,
          // The last try waits for its answer, or nothing would be learned.
          ...(attempt < triesMax - 1 && { hangUpMs }),
        }),
        { triesMax, pauseMs: () => stage.chance.between(pauseMs.min, pauseMs.max) },
      ),
    ),
  );
}
