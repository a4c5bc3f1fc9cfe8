/** Single flight in one process, with a Map as the cache. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LockStore } from '../../src/contract/index.ts';
import {
  type CachedLoad,
  createGate,
  type FlightCache,
  type SingleFlightOptions,
  singleFlight,
} from '../../src/index.ts';
import { memory, memoryLocks } from '../../src/stores/memory/index.ts';
import { door, jumpingRuntime, pause, turn, until } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';

const unhandled: unknown[] = [];
const note = (error: unknown): void => void unhandled.push(error);
beforeAll(() => void process.on('unhandledRejection', note));
afterAll(() => {
  process.removeListener('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});

class MapCache implements FlightCache<string> {
  readonly entries = new Map<string, CachedLoad<string>>();
  readonly sets: { keepMs: number; fence: bigint | undefined }[] = [];
  async get(key: string) {
    return this.entries.get(key);
  }
  async set(key: string, entry: CachedLoad<string>, how: MapCache['sets'][number]) {
    this.sets.push(how);
    this.entries.set(key, entry);
  }
}

/** Two processes over one lock store and one cache; `loads` counts what reaches the source. */
function setUp(
  options: Partial<SingleFlightOptions<string>> = {},
  locks: LockStore = memoryLocks(),
) {
  const runtime = jumpingRuntime();
  const cache = new MapCache();
  const loads: string[] = [];
  const errors: unknown[] = [];
  const open = () =>
    singleFlight<string>(createGate({ records: memory(), locks }), {
      name: 'product',
      cache,
      runtime,
      freshMs: 10_000,
      async load(key) {
        loads.push(key);
        await pause(20);
        return `${key} v${loads.length}`;
      },
      onError: (error) => errors.push(error),
      ...options,
    });
  return { runtime, cache, loads, errors, here: open(), there: open() };
}

describe('single flight', () => {
  it('a thousand readers of two processes: one load, one value', async () => {
    const { here, there, loads } = setUp();
    const reads = Array.from({ length: 1_000 }, (_, i) => (i % 2 ? here : there).get('a'));
    expect(new Set(await Promise.all(reads))).toEqual(new Set(['a v1']));
    expect(loads).toEqual(['a']);
  });

  it('keys do not wait for each other', async () => {
    const slow = door();
    const { here } = setUp({
      load: async (key) => {
        if (key === 'slow') await slow.opened;
        return key;
      },
    });
    const waiting = here.get('slow');
    expect(await here.get('fast')).toBe('fast');
    slow.open();
    expect(await waiting).toBe('slow');
  });

  it('a fresh value is read without a lock, a stale one is loaded again', async () => {
    const { here, there, loads, runtime, cache } = setUp({ staleMs: 5_000 });
    expect(await here.get('a')).toBe('a v1');
    expect(await there.get('a')).toBe('a v1');
    runtime.jump(10_001);
    expect(await there.get('a')).toBe('a v2');
    expect(loads).toHaveLength(2);
    expect(cache.sets.map(({ keepMs }) => keepMs)).toEqual([15_000, 15_000]);
    const [first, second] = cache.sets.map(({ fence }) => fence as bigint);
    expect((second as bigint) > (first as bigint)).toBe(true);
  });

  it('stale while loading: everybody gets the stale value at once, one loads', async () => {
    const { here, there, loads, runtime, cache, errors } = setUp({
      staleMs: 60_000,
      whileLoading: 'stale',
    });
    await here.get('a');
    runtime.jump(10_001);
    const reads = Array.from({ length: 100 }, (_, i) => (i % 2 ? here : there).get('a'));
    expect(new Set(await Promise.all(reads))).toEqual(new Set(['a v1']));
    await until('it is loaded', () => cache.sets.length === 2);
    expect(loads).toHaveLength(2);
    expect(await there.get('a')).toBe('a v2');
    expect(errors).toEqual([]);
  });

  it('a load that takes too long: stale value, then fallback, then BUSY', async () => {
    const slow = door<string>();
    const load = () => slow.opened;
    const stale = setUp({ waitMs: 50, staleMs: 60_000, load });
    stale.cache.entries.set('a', { value: 'old', freshUntilMs: 0 });
    expect(await stale.here.get('a')).toBe('old');
    const spare = setUp({ waitMs: 50, load, fallback: (key) => `no ${key}` });
    expect(await spare.here.get('a')).toBe('no a');
    expect(spare.cache.sets).toEqual([]);
    const bare = setUp({ waitMs: 50, load });
    await rejection(bare.here.get('a'), 'BUSY');
    await rejection(bare.there.get('a'), 'BUSY'); // Waits for the other process's lock.
    slow.open('late');
    await until('it is kept', () => bare.cache.entries.size === 1);
    expect(await bare.there.get('a')).toBe('late');
  });

  it('who came later waits its own time, not the rest of an earlier caller', async () => {
    const locks = memoryLocks();
    const { here } = setUp({ waitMs: 1_000 }, locks);
    const attempt = { name: 'product/a', owner: 'another process', leaseMs: 60_000 };
    await locks.tryAcquire(attempt);
    const early = rejection(here.get('a'), 'BUSY');
    await pause(600);
    const late = here.get('a');
    await early;
    await pause(200); // The flight of the first has ended, too.
    await locks.release(attempt);
    expect(await late).toBe('a v1');
  });

  it('a failure goes to those who waited and is not kept', async () => {
    let failing = true;
    const loads: string[] = [];
    const { here, cache } = setUp({
      async load(key) {
        loads.push(key);
        await pause(5);
        if (failing) throw new Error('source is down');
        return 'back';
      },
    });
    const reads = await Promise.allSettled([1, 2, 3].map(() => here.get('a')));
    for (const read of reads) expect(read).toMatchObject({ reason: { message: 'source is down' } });
    expect(loads).toHaveLength(1);
    expect(cache.sets).toEqual([]);
    failing = false;
    expect(await here.get('a')).toBe('back');
  });

  it('negativeMs: a failure is remembered in all processes, for its time', async () => {
    const { here, there, loads, runtime } = setUp({
      negativeMs: 1_000,
      load: async (key) => {
        loads.push(key);
        if (loads.length === 1) throw new Error('source is down');
        return 'back';
      },
    });
    await expect(here.get('a')).rejects.toThrow('source is down');
    const error = await rejection(there.get('a'), 'LOAD_FAILED');
    expect(error.message).toBe('source is down');
    expect(error['retryAfterMs']).toBeGreaterThan(0);
    expect(loads).toHaveLength(1);
    runtime.jump(1_001);
    expect(await there.get('a')).toBe('back');
  });

  it('a loader that hangs is given up; the next one loads, and the late value is not kept', async () => {
    const hang = door<string>();
    const signals: AbortSignal[] = [];
    const { here, there, cache } = setUp({
      leaseMs: 200,
      loadMaxMs: 300,
      waitMs: 5_000,
      load: async (_, { signal }) => {
        signals.push(signal);
        return signals.length === 1 ? await hang.opened : 'second';
      },
    });
    const first = rejection(here.get('a'), 'LOCK_LOST');
    await until('the first loads', () => signals.length === 1);
    expect(await there.get('a')).toBe('second');
    await first;
    expect(signals[0]?.aborted).toBe(true);
    hang.open('first, late');
    await turn();
    expect(cache.entries.get('a')).toMatchObject({ value: 'second' });
    expect(cache.sets).toHaveLength(1);
  });

  it('a lock store that is down: each process loads once, or says so', async () => {
    const down: LockStore = {
      ...memoryLocks(),
      name: 'down',
      capabilities: memoryLocks().capabilities,
      tryAcquire: () => Promise.reject(new Error('down')),
      renew: () => Promise.reject(new Error('down')),
      release: () => Promise.reject(new Error('down')),
      inspect: () => Promise.reject(new Error('down')),
    };
    const options = { waitMs: 4_000 };
    const { here, loads, errors } = setUp(options, down);
    const startMs = performance.now();
    const reads = [1, 2, 3].map(() => here.get('a'));
    expect(await Promise.all(reads)).toEqual(['a v1', 'a v1', 'a v1']);
    expect(loads).toHaveLength(1);
    expect(errors[0]).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(performance.now() - startMs).toBeLessThan(3_500); // With time to spare.
    const strict = setUp({ ...options, whenLocksFail: 'throw' }, down);
    await expect(strict.here.get('a')).rejects.toMatchObject({ name: 'TurngateError' });
    expect(strict.loads).toEqual([]);
  });

  it('trouble of the cache: reading goes to the caller, writing to onError', async () => {
    const reading = setUp({
      cache: { get: () => Promise.reject(new Error('no read')), set: async () => undefined },
    });
    await expect(reading.here.get('a')).rejects.toThrow('no read');
    const writing = setUp({
      cache: { get: async () => undefined, set: () => Promise.reject(new Error('no write')) },
    });
    expect(await writing.here.get('a')).toBe('a v1');
    expect(writing.errors).toMatchObject([{ message: 'no write' }]);
  });

  it('an abort ends one caller and not the load; what is forgotten is neither joined nor kept', async () => {
    const first = door<string>();
    const { here, loads, cache } = setUp({
      load: async (key) => {
        loads.push(key);
        return loads.length === 1 ? await first.opened : 'second';
      },
    });
    const stop = new AbortController();
    const aborted = rejection(here.get('a', { signal: stop.signal }), 'ABORTED');
    const waiting = here.get('a');
    await until('it loads', () => loads.length === 1);
    stop.abort();
    await aborted;
    here.forget('a');
    const later = here.get('a'); // A flight of its own, behind the lock of the first.
    first.open('first');
    expect(await waiting).toBe('first');
    expect(await later).toBe('second');
    expect(cache.sets).toHaveLength(1);
    expect(await here.get('a')).toBe('second');
  });

  it('a loader whose lease ended unnoticed gives its value and does not keep it', async () => {
    const { here, cache } = setUp({
      leaseMs: 200,
      async load() {
        const endMs = performance.now() + 400;
        while (performance.now() < endMs); // No timer can fire: the signal comes too late.
        return 'late';
      },
    });
    expect(await here.get('a')).toBe('late');
    expect(cache.sets).toEqual([]);
  });

  it('bad options are refused', () => {
    const cache = new MapCache();
    const good = { name: 'n', load: async () => '', cache, freshMs: 1 };
    const bad = [
      { ...good, name: '' },
      { ...good, load: 1 },
      { ...good, cache: {} },
      { ...good, freshMs: undefined },
      { ...good, freshMs: 0 },
      { ...good, whileLoading: 'never' },
      { ...good, ttl: 1 },
    ];
    const gate = createGate({ records: memory(), locks: memoryLocks() });
    for (const options of bad) {
      expect(() => singleFlight(gate, options as never)).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      );
    }
  });
});
