/** What a run leaves in its store, apart from what the docs say stays. */
import { Redis } from 'ioredis';
import { until } from '../support/clock.ts';

/** Leases and places in the queue of killed processes end by themselves within this. */
const lapseMs = 8_000;

/** Waits until `look` finds nothing any more; gives what it found last. */
export async function lapsed(look: () => Promise<readonly string[]>): Promise<readonly string[]> {
  let found = await look();
  const nothing = async (): Promise<boolean> => {
    found = await look();
    return found.length === 0;
  };
  await until('nothing is left', nothing, lapseMs).catch(() => undefined);
  return found;
}

/** Keys of Redis servers, except the fence counters (one for each hash tag, at most 128). */
export async function redisLeftovers(urls: readonly string[]): Promise<readonly string[]> {
  const clients = urls.map((url) => new Redis(url));
  try {
    return await lapsed(async () => {
      const keys = await Promise.all(clients.map((client) => client.keys('*')));
      return keys.flat().filter((key) => !/^turngate:\{\d+\}:fence$/.test(key));
    });
  } finally {
    for (const client of clients) client.disconnect();
  }
}
