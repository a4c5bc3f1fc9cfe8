/** Uses of locks over a store that numbers nothing, as a Redlock quorum does. */
import { startRedis, type TestServer } from '@turngate/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createGate,
  type Lead,
  segmented,
  singleFlight,
  type UnfencedGate,
  type UnfencedLockHandle,
} from '../../src/index.ts';
import { memory } from '../../src/stores/memory/index.ts';
import { redlock } from '../../src/stores/redis/index.ts';
import { until } from '../support/clock.ts';
import { describeWith } from '../support/servers.ts';

describeWith('redis', 'over a quorum without fences', () => {
  let servers: TestServer[] = [];
  let clients: Redis[] = [];
  let gate: UnfencedGate<unknown>;
  beforeAll(async () => {
    servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
    clients = servers.map(({ url }) => new Redis(url));
    const locks = redlock(clients, { prefix: 'unfenced:', nodeLimitMs: 5_000 });
    gate = createGate({ records: memory(), locks });
  });
  afterAll(async () => {
    await gate?.close();
    for (const client of clients) client.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
  });

  it('a handle has no fence: not in its type, and reading it throws', async () => {
    const handle: UnfencedLockHandle = await gate.acquire('plain');
    expect(handle.fenced).toBe(false);
    // @ts-expect-error There is no such property.
    expect(() => handle.fence).toThrow('has no fences');
    expect(handle.isHeld()).toBe(true);
    expect(await handle.release()).toBe('released');
    await gate.lock(['a', 'b'], async (locks) => {
      expect(locks.names).toEqual(['a', 'b']);
      // @ts-expect-error Nor is there here.
      expect(() => locks.fenceOf('a')).toThrow('has no fences');
    });
  });

  it('a single flight loads once, and says that it has no fence', async () => {
    const kept = new Map<string, unknown>();
    const fences: unknown[] = [];
    const flight = singleFlight<string>(gate, {
      name: 'flight',
      freshMs: 60_000,
      cache: {
        get: async (key) => kept.get(key) as never,
        set: async (key, entry, { fence }) => {
          fences.push(fence);
          kept.set(key, entry);
        },
      },
      load: async (key, { fence }) => {
        fences.push(fence);
        return `value of ${key}`;
      },
      onError: (error) => expect.unreachable(String(error)),
    });
    const values = await Promise.all(Array.from({ length: 20 }, () => flight.get('k')));
    expect(new Set(values)).toEqual(new Set(['value of k']));
    expect(fences).toEqual([undefined, undefined]);
  });

  it('an election has a leader, whose fence throws when it is read', async () => {
    let lead: Lead | undefined;
    const errors: unknown[] = [];
    const election = gate.elect('office', {
      onElected: async (given) => {
        lead = given;
        await new Promise((resolve) => given.signal.addEventListener('abort', resolve));
      },
      onError: (error) => errors.push(error),
    });
    await until('there is a leader', () => lead !== undefined);
    lead?.assertLeading();
    expect(() => lead?.fence).toThrow('has no fences');
    await election.resign();
    expect(errors).toEqual([]);
  });

  it('segments work, with the handles of their gate', async () => {
    const parts = segmented(gate, 'hot', { segments: 4 });
    const index = await parts.withKey('k', {}, async ({ index, lock }) => {
      lock.assertHeld();
      // @ts-expect-error The segment's lock is the gate's.
      expect(() => lock.fence).toThrow('has no fences');
      return index;
    });
    expect(index).toBe(parts.segmentOf('k'));
  });
});
