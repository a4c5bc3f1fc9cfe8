/** Enter and check on a real Redis, over each client library. */
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { createClient } from 'redis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type RedisFence, redisFence } from '../../src/fence/index.ts';
import { rejection } from '../support/errors.ts';
import { describeWith, serverUrl } from '../support/servers.ts';

const url = serverUrl('redis');
const old = 2n ** 62n; // Longer than a double: old and young differ in the last digit only.
const young = old + 1n;

/** Redis Cluster's slot of a key: CRC16 (XMODEM) of the part in the first braces, if there is one. */
function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of Buffer.from(hashed)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
    crc &= 0xffff;
  }
  return crc % 16_384;
}

type Client = Parameters<typeof redisFence>[0];
const clients: Record<string, () => Promise<{ client: Client; end(): Promise<unknown> }>> = {
  'ioredis 6': async () => {
    const client = new Redis(url);
    return { client, end: () => client.quit() };
  },
  'ioredis 5': async () => {
    const client = new Redis5(url);
    return { client, end: () => client.quit() };
  },
  'ioredis with keyPrefix': async () => {
    const client = new Redis(url, { keyPrefix: 'tenant:' });
    return { client, end: () => client.quit() };
  },
  'node-redis': async () => {
    const client = await createClient({ url }).connect();
    return { client, end: () => client.close() };
  },
};

describeWith('redis', 'fences in Redis', () => {
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(url);
  });
  afterAll(async () => {
    await admin.quit();
  });

  for (const [name, open] of Object.entries(clients)) {
    describe(name, () => {
      let fences: RedisFence;
      let end: () => Promise<unknown>;
      let key = '';
      let count = 0;
      beforeAll(async () => {
        const opened = await open();
        fences = redisFence(opened.client);
        end = opened.end;
      });
      afterAll(() => end());
      beforeEach(() => {
        key = `fence ${name} ${process.pid} ${++count}`;
      });

      it('enter reads the value and its writes pass', async () => {
        const entry = await fences.enter({ key, fence: old });
        expect(entry.value).toBeNull();
        expect(await entry.write('SET', 'one', 'PX', '60000')).toBe('OK');
        expect((await fences.enter({ key, fence: old })).value).toBe('one');
      });

      it('other types are read and written with their own commands', async () => {
        const read = ['HGET', 'total'] as const;
        const entry = await fences.enter({ key, fence: old, read });
        await entry.write('HSET', 'total', '7');
        expect(await entry.write('HINCRBY', 'total', '3')).toBe(10);
        expect((await fences.enter({ key, fence: young, read })).value).toBe('10');
      });

      it('an older fence neither enters nor writes nor checks, and changes nothing', async () => {
        const late = await fences.enter({ key, fence: old });
        await late.write('SET', 'mine');
        const next = await fences.enter({ key, fence: young });
        const error = await rejection(fences.enter({ key, fence: old }), 'FENCE_STALE');
        expect(error.message).toContain(String(young));
        await rejection(late.write('SET', 'late'), 'FENCE_STALE');
        await rejection(late.write('DEL'), 'FENCE_STALE');
        await rejection(late.check(), 'FENCE_STALE');
        await next.check();
        expect((await fences.enter({ key, fence: young })).value).toBe('mine');
      });

      it('fences are compared as numbers, not as texts', async () => {
        await fences.enter({ key, fence: 9n });
        await fences.enter({ key, fence: 10n });
        await rejection(fences.enter({ key, fence: 9n }), 'FENCE_STALE');
      });

      it('a lost mark shuts out who entered before; entering again goes on', async () => {
        const entry = await fences.enter({ key, fence: old });
        const marks = await admin.keys(`*${key}*turngate-fence`);
        expect(marks).toHaveLength(1);
        expect(await admin.ttl(marks[0] as string)).toBe(-1);
        await admin.del(marks[0] as string);
        await rejection(entry.write('SET', 'late'), 'FENCE_STALE');
        await fences.enter({ key, fence: old });
      });

      it('survives SCRIPT FLUSH between any two calls', async () => {
        await admin.script('FLUSH');
        const entry = await fences.enter({ key, fence: old });
        await admin.script('FLUSH');
        await entry.write('SET', 'kept');
        await admin.script('FLUSH');
        await entry.check();
      });

      it('an error of the server is passed on and leaves the data alone', async () => {
        const entry = await fences.enter({ key, fence: old });
        await entry.write('SET', 'text');
        await expect(entry.write('LPUSH', 'x')).rejects.toThrow('WRONGTYPE');
        await rejection(entry.write('SET x'), 'OPTION_INVALID');
        expect((await fences.enter({ key, fence: old })).value).toBe('text');
      });
    });
  }

  it('the mark is in the slot of its key', async () => {
    const sent: string[][] = [];
    const spy = {
      evalsha: async (_sha: string, keys: number, ...rest: string[]) => {
        sent.push(rest.slice(0, keys));
        return ['entered', '1', null];
      },
      eval: async () => null,
    };
    const fences = redisFence(spy);
    const good = ['a', 'a:b', '{t}:a', 'a{t}b{u}', 'a{t}'];
    for (const key of good) await fences.enter({ key, fence: 1n });
    expect(sent).toHaveLength(good.length);
    expect(slotOf('123456789')).toBe(0x31c3 % 16_384); // The check value of CRC16/XMODEM.
    for (const [mark, key] of sent) {
      expect(mark).not.toBe(key);
      expect(slotOf(mark as string)).toBe(slotOf(key as string));
    }
    for (const key of ['', '{}a', 'a}', '{a', '{}{a}']) {
      await rejection(fences.enter({ key, fence: 1n }), 'OPTION_INVALID');
    }
  });

  it('no answer is told as unknown', async () => {
    const client = new Redis(url, { maxRetriesPerRequest: 0 });
    const entry = await redisFence(client).enter({ key: `gone ${process.pid}`, fence: 1n });
    client.disconnect();
    const error = await rejection(entry.write('SET', 'x'), 'STORE_UNAVAILABLE');
    expect(error['outcome']).toBe('unknown');
  });
});
