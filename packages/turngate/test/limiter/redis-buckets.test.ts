/** Token buckets in a real Redis. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { createClient } from 'redis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { redisTokenBuckets } from '../../src/limiter/index.ts';
import { pause, until } from '../support/clock.ts';
import { describeWith, serverUrl } from '../support/servers.ts';

const run = promisify(execFile);
const url = serverUrl('redis');

describeWith('redis', 'token buckets in Redis', () => {
  let client: Redis;
  let count = 0;
  const newKey = (): string => `bucket ${process.pid} ${++count}`;
  const redisKey = (key: string): string => `turngate:bucket:${key}`;
  beforeAll(() => {
    client = new Redis(url);
  });
  afterAll(async () => {
    await client.quit();
  });

  async function serverMicros(): Promise<number> {
    const [seconds, micros] = await client.time();
    return Number(seconds) * 1_000_000 + Number(micros);
  }

  it('three processes with clocks hours apart get capacity + rate x time together', async () => {
    const [key, capacity, rate] = [newKey(), 20, 40];
    const child = fileURLToPath(new URL('bucket-child.mjs', import.meta.url));
    const startMicros = await serverMicros();
    const outputs = await Promise.all(
      [0, 3_600_000, -3_600_000].map((skewMs) => {
        const args = [child, url, key, capacity, rate, 1_500, skewMs].map(String);
        return run(process.execPath, args);
      }),
    );
    const seconds = ((await serverMicros()) - startMicros) / 1_000_000;
    const granted = outputs.reduce((sum, { stdout }) => sum + Number(stdout), 0);
    expect(granted).toBeLessThanOrEqual(capacity + rate * seconds);
    expect(granted).toBeGreaterThan(capacity + rate / 2); // They did take, and it did refill.
  });

  it('refills by the server time to the microsecond, and tells when to come back', async () => {
    const [key, options] = [newKey(), { capacity: 3, refillPerSecond: 0.5 }];
    const buckets = redisTokenBuckets(client);
    for (const remaining of [2, 1, 0]) {
      expect(await buckets.take(key, options)).toMatchObject({ allowed: true, remaining });
    }
    const refused = await buckets.take(key, options);
    expect(refused).toMatchObject({ allowed: false, remaining: 0 });
    expect(refused.retryAfterMs).toBeGreaterThan(0);
    expect(refused.retryAfterMs).toBeLessThanOrEqual(2_000);
    await pause(refused.retryAfterMs);
    expect((await buckets.take(key, options)).allowed).toBe(true);
  });

  it('one atomic step: of many takes at once exactly the capacity is granted', async () => {
    const [key, options] = [newKey(), { capacity: 50, refillPerSecond: 0.001 }];
    const buckets = redisTokenBuckets(client);
    const answers = await Promise.all(
      Array.from({ length: 300 }, () => buckets.take(key, options)),
    );
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(50);
  });

  it('the largest bucket keeps whole numbers', async () => {
    const [key, options] = [newKey(), { capacity: 1_000_000, refillPerSecond: 0.001 }];
    const buckets = redisTokenBuckets(client);
    await buckets.take(key, { ...options, tokens: 999_999 });
    expect(await client.get(redisKey(key))).toMatch(/^1000000000 \d{16}$/);
    expect((await buckets.take(key, options)).allowed).toBe(true);
    expect((await buckets.take(key, options)).allowed).toBe(false);
    const [amount] = (await client.get(redisKey(key)))?.split(' ') ?? [];
    expect(Number(amount)).toBeLessThan(1_000_000); // Nano-tokens of a few milliseconds at most.
  });

  it('an idle bucket vanishes when it is full, and a refused take keeps it no longer', async () => {
    const [key, options] = [newKey(), { capacity: 2, refillPerSecond: 2 }];
    const buckets = redisTokenBuckets(client);
    await buckets.take(key, { ...options, tokens: 2 });
    const ttlMs = await client.pttl(redisKey(key));
    expect(ttlMs).toBeGreaterThan(500);
    expect(ttlMs).toBeLessThanOrEqual(1_000);
    await pause(300);
    expect((await buckets.take(key, { ...options, tokens: 2 })).allowed).toBe(false);
    expect(await client.pttl(redisKey(key))).toBeLessThanOrEqual(705);
    await until('it is gone', async () => (await client.exists(redisKey(key))) === 0);
  });

  it('a server clock that was set back gives nothing away, and waits no longer than a refill', async () => {
    const [key, options] = [newKey(), { capacity: 10, refillPerSecond: 10 }];
    const buckets = redisTokenBuckets(client);
    // As if the last take had been an hour in the future.
    const future = (await serverMicros()) + 3_600_000_000;
    await client.set(redisKey(key), `1000000000 ${future}`, 'PX', 900);
    expect((await buckets.take(key, options)).allowed).toBe(true);
    expect((await buckets.take(key, options)).allowed).toBe(false);
    // A clock that swings back and forth must not refill the same hour twice.
    await client.set(redisKey(key), `2000000000 ${future}`, 'PX', 900);
    await buckets.take(key, options);
    expect(await client.get(redisKey(key))).toBe(`1000000000 ${future}`);
    await pause(1_050);
    expect((await buckets.take(key, options)).remaining).toBe(9);
  });

  it('all clients, also after SCRIPT FLUSH', async () => {
    const ioredis5 = new Redis5(url);
    const nodeRedis = await createClient({ url }).connect();
    const [key, options] = [newKey(), { capacity: 3, refillPerSecond: 0.001 }];
    for (const one of [client, ioredis5, nodeRedis]) {
      await client.script('FLUSH');
      expect((await redisTokenBuckets(one).take(key, options)).allowed).toBe(true);
    }
    expect((await redisTokenBuckets(nodeRedis).take(key, options)).allowed).toBe(false);
    ioredis5.disconnect();
    nodeRedis.destroy();
  });

  it('a key that is something else is an error, not a full bucket', async () => {
    const key = newKey();
    await client.set(redisKey(key), 'something else');
    const take = redisTokenBuckets(client).take(key, { capacity: 1, refillPerSecond: 1 });
    await expect(take).rejects.toThrow('WRONGTYPE');
  });
});
