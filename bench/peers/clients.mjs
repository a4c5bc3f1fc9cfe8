// Clients of the benchmark's own Redis, one per connection, each a real one with its defaults.
import { Redis } from 'ioredis';
import { Redis as Redis6 } from 'ioredis6';
import { createClient } from 'redis';

const host = '127.0.0.1';

/** A connected client of the kind: `ioredis5`, `ioredis6` or `nodeRedis`. */
export async function openClient(kind, port) {
  if (kind === 'nodeRedis') {
    const client = createClient({ socket: { host, port } });
    client.on('error', () => {});
    await client.connect();
    return { client, close: () => client.close() };
  }
  const client = kind === 'ioredis6' ? new Redis6({ host, port }) : new Redis({ host, port });
  client.on('error', () => {});
  await client.ping();
  return { client, close: () => client.quit() };
}
