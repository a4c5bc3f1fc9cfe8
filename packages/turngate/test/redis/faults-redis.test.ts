import { startRedis, type TestServer } from '@turngate/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LockGranted } from '../../src/contract/lock-store.ts';
import { isTurngateError } from '../../src/core/errors.ts';
import { createGate, onEvent } from '../../src/index.ts';
import { memory } from '../../src/stores/memory/index.ts';
import { type RedisLocksOptions, redisLocks } from '../../src/stores/redis/index.ts';
import { pause } from '../support/clock.ts';
import { attemptAt, clientKinds, endAfter, freshPrefix, ioredis, nodeRedis } from './support.ts';

let server: TestServer;
let admin: Redis;
beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
});
afterAll(async () => {
  admin?.disconnect();
  await server?.stop();
});

function open(client: Parameters<typeof redisLocks>[0], options: RedisLocksOptions = {}) {
  const store = redisLocks(client, { prefix: freshPrefix(), ...options });
  endAfter(() => store.close());
  return store;
}

const gateOver = (locks: ReturnType<typeof redisLocks>) => createGate({ records: memory(), locks });

async function errorOf(promise: Promise<unknown>): Promise<Error & { outcome?: string }> {
  return await promise.then(
    () => expect.unreachable('it did not fail'),
    (error: Error) => error,
  );
}

/** Waits until a condition holds; fails after twenty seconds. */
async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const endMs = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > endMs) expect.unreachable(`never: ${what}`);
    await pause(5);
  }
}

for (const [kind, connect] of Object.entries(clientKinds)) {
  describe(`faults, ${kind}`, () => {
    it('SCRIPT FLUSH between any two calls reaches no caller', async () => {
      const store = open(await connect(server.url));
      const flushed = async <T>(call: () => Promise<T>): Promise<T> => {
        await admin.script('FLUSH');
        return await call();
      };
      const [a, b, c] = [attemptAt('flush'), attemptAt('flush'), attemptAt('flush')];
      await flushed(() => store.tryAcquire(a));
      expect(await flushed(() => store.renew([a]))).toEqual(['ours']);
      await flushed(() => store.tryAcquire(b));
      expect((await flushed(() => store.inspect('flush')))?.owner).toBe(a.owner);
      expect((await flushed(() => store.pass!(a, c))).answer).toBe('ours');
      expect(await flushed(() => store.release(b))).toBe('ours');
      expect(await flushed(() => store.forceRelease!('flush'))).toBe('released');
      const shared = attemptAt('flush', { share: { take: 1, limit: 1 } });
      expect((await flushed(() => store.tryAcquire(shared))).kind).toBe('granted');
      expect(await flushed(() => store.renew([shared]))).toEqual(['ours']);
      expect(await flushed(() => store.release(shared))).toBe('ours');
    });

    it('many calls of one tick survive SCRIPT FLUSH too', async () => {
      const store = open(await connect(server.url));
      const attempts = Array.from({ length: 200 }, (_, i) => attemptAt(`flush ${i}`));
      await admin.script('FLUSH');
      const grants = await Promise.all(attempts.map((attempt) => store.tryAcquire(attempt)));
      expect(grants.every(({ kind: answer }) => answer === 'granted')).toBe(true);
    });

    it('a lost subscription costs a wait until the next try, never the lock', async () => {
      const options = { prefix: freshPrefix() };
      const [mine, theirs] = [
        open(await connect(server.url), options),
        open(await connect(server.url), options),
      ];
      const held = await gateOver(mine).acquire('deaf');
      const waiting = gateOver(theirs).acquire('deaf', { waitMs: 10_000 });
      await until('it waits', async () => (await mine.inspect('deaf'))?.waiters === 1);
      await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await held.release();
      const lock = await waiting;
      await lock.release();
      const again = await gateOver(mine).acquire('deaf');
      const pushed = gateOver(theirs).acquire('deaf', { waitMs: 10_000 });
      await until('it listens', async () => (await admin.pubsub('CHANNELS', '*')).length > 0);
      await until('it waits', async () => (await mine.inspect('deaf'))?.waiters === 1);
      await again.release();
      await (await pushed).release();
    });

    it('a lock granted after the caller gave up is free within its lease', async () => {
      const client = await connect(server.url);
      const store = open(client);
      await store.tryAcquire(attemptAt('warm'));
      await admin.client('PAUSE', 700);
      const caller = new AbortController();
      const call = gateOver(store).acquire('ghost', { leaseMs: 60_000, signal: caller.signal });
      setTimeout(() => caller.abort(), 100);
      expect(isTurngateError(await errorOf(call), 'ABORTED')).toBe(true);
      await pause(700);
      await until('it is free', async () => (await store.inspect('ghost')) === undefined);
    });
  });
}

describe('least privilege', () => {
  const commands =
    '+ping +hello +auth +info +select +client|setname +evalsha +eval +get +set +getset +mget +mset ' +
    '+exists +del +pttl +pexpire +time +lindex +lrem +rpush +hset +hget +hdel +hgetall +hvals +publish';

  async function user(name: string, more: string): Promise<object> {
    const rules = `on >secret resetchannels ~app:* -@all ${commands} ${more}`.split(' ');
    expect(await admin.acl('SETUSER', name, ...rules)).toBe('OK');
    return { username: name, password: 'secret' };
  }

  it('works under an ACL of one key prefix and one channel prefix', async () => {
    const rights = await user('narrow', '&app:* +subscribe +unsubscribe');
    const prefixed = open(ioredis(server.url, { ...rights, keyPrefix: 'app:' }), { prefix: 'tg:' });
    const plain = open(await nodeRedis(server.url, rights), { prefix: 'app:tg:' });
    for (const [mine, theirs] of [
      [prefixed, plain],
      [plain, prefixed],
    ] as const) {
      const [holder, waiter] = [attemptAt('acl {x} }{'), attemptAt('acl {x} }{')];
      const first = (await mine.tryAcquire(holder)) as LockGranted;
      expect((await theirs.tryAcquire(waiter)).kind).toBe('held');
      const told = new Promise<LockGranted | undefined>(
        (resolve) => void theirs.watch?.(waiter, resolve),
      );
      expect(await mine.release(holder)).toBe('ours');
      expect((await told)?.fence).toBeGreaterThan(first.fence);
      expect(theirs.capabilities.wakeup).toBe('push');
      expect(await theirs.renew([waiter])).toEqual(['ours']);
      expect(await theirs.release(waiter)).toBe('ours');
      const many = Array.from({ length: 20 }, (_, i) => attemptAt(`acl ${i}`));
      const grants = await Promise.all(many.map((attempt) => mine.tryAcquire(attempt)));
      expect(grants.every(({ kind }) => kind === 'granted')).toBe(true);
      const answers = await Promise.all(many.map((attempt) => mine.release(attempt)));
      expect(new Set(answers)).toEqual(new Set(['ours']));
    }
    const keys = await admin.keys('app:tg:*');
    expect(keys.length).toBeGreaterThan(0);
  });

  it('takes many names of one tick one by one where it may not take them together', async () => {
    const rights = await user('single', '&app:* -mset');
    for (const client of [ioredis(server.url, rights), await nodeRedis(server.url, rights)]) {
      const store = open(client, { prefix: 'app:' });
      const many = Array.from({ length: 20 }, (_, i) => attemptAt(`single ${i}`));
      const grants = await Promise.all(many.map((attempt) => store.tryAcquire(attempt)));
      expect(grants.every(({ kind }) => kind === 'granted')).toBe(true);
      const answers = await Promise.all(many.map((attempt) => store.release(attempt)));
      expect(new Set(answers)).toEqual(new Set(['ours']));
    }
  });

  it('says what it may not do, and that nothing was done', async () => {
    const rights = await user('blind', '&app:* -mget');
    const store = open(ioredis(server.url, rights), { prefix: 'app:' });
    const attempt = attemptAt('blind');
    await store.tryAcquire(attempt);
    await expect(store.renew([attempt])).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      outcome: 'not-applied',
      message: expect.stringMatching(/refuses .* until its set-up is changed/),
    });
    await store.release(attempt);
  });

  it('falls back to polling, and says so, where SUBSCRIBE is not allowed', async () => {
    const rights = await user('mute', '&app:*');
    for (const client of [ioredis(server.url, rights), await nodeRedis(server.url, rights)]) {
      const store = open(client, { prefix: 'app:' });
      const [holder, waiter] = [attemptAt('mute'), attemptAt('mute')];
      await store.tryAcquire(holder);
      expect((await store.tryAcquire(waiter)).kind).toBe('held');
      expect(store.capabilities.wakeup).toBe('poll');
      await store.release(holder);
      expect((await store.tryAcquire(waiter)).kind).toBe('granted');
      await store.release(waiter);
    }
  });

  it('a key outside the rights is told as misuse of the set-up, not applied', async () => {
    const rights = await user('outside', '&app:*');
    const error = await errorOf(
      open(ioredis(server.url, rights), { prefix: 'other:' }).tryAcquire(attemptAt('x')),
    );
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'not-applied' });
    expect(error.message).toMatch(/set-up/);
  });
});

describe('key prefixes', () => {
  it('a prefix with braces is refused before any command', () => {
    const client = ioredis(server.url, { keyPrefix: '{app}:', lazyConnect: true });
    expect(() => redisLocks(client)).toThrow(/braces/);
    const plain = ioredis(server.url, { lazyConnect: true });
    expect(() => redisLocks(plain, { prefix: '{x}' })).toThrow(/braces/);
    expect(() => redisLocks({} as never)).toThrow(/client/);
  });
});

describe('what the server does to locks', () => {
  it('with memory exhausted renewal, release and hand-over pass; a new lock is refused', async () => {
    const full = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
    endAfter(() => full.stop());
    const operator = ioredis(full.url);
    const store = open(ioredis(full.url));
    const [holder, waiter] = [attemptAt('full'), attemptAt('full')];
    const shared = attemptAt('shared', { share: { take: 1, limit: 2 } });
    const other = attemptAt('shared', { share: { take: 1, limit: 2 } });
    for (const attempt of [holder, waiter, shared, other]) await store.tryAcquire(attempt);
    await operator.config('SET', 'maxmemory', '1');
    await expect(operator.set('x', 'y')).rejects.toThrow(/OOM/);
    expect(await store.renew([holder, shared])).toEqual(['ours', 'ours']);
    const refused = await errorOf(store.tryAcquire(attemptAt('new')));
    expect(refused).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      outcome: 'not-applied',
      retryAfterMs: 250,
    });
    const told = new Promise((resolve) => void store.watch?.(waiter, resolve));
    expect(await store.release(holder)).toBe('ours');
    await told;
    expect((await store.inspect('full'))?.owner).toBe(waiter.owner);
    expect(await store.release(waiter)).toBe('ours');
    expect(await store.release(shared)).toBe('ours');
    expect((await store.inspect('shared'))?.holders).toBe(1);
    expect(await store.release(other)).toBe('ours');
    expect(await store.inspect('shared')).toBeUndefined();
  });

  it('a replica refuses in a typed way; a waiting caller gets in when it is a master again', async () => {
    const replica = await startRedis();
    endAfter(() => replica.stop());
    const operator = ioredis(replica.url);
    const store = open(ioredis(replica.url));
    await operator.replicaof(server.host, server.port);
    await until('it is a replica', async () =>
      /READONLY/.test((await errorOf(operator.set('x', 'y'))).message),
    );
    const error = await errorOf(store.tryAcquire(attemptAt('ro')));
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'not-applied' });
    const waiting = gateOver(store).acquire('ro', { waitMs: 8_000 });
    await pause(500);
    await operator.replicaof('NO', 'ONE');
    await (await waiting).release();
  });

  it('fences grow over the loss of all data', async () => {
    const store = open(ioredis(server.url));
    const fences: bigint[] = [];
    for (let i = 0; i < 4; i++) {
      const attempt = attemptAt('flushed', { fences: 16 });
      fences.push(((await store.tryAcquire(attempt)) as LockGranted).fence);
      if (i % 2 === 0) await admin.flushall();
      expect(await store.release(attempt)).toBe(i % 2 === 0 ? 'expired' : 'ours');
    }
    expect(fences).toEqual([...fences].sort((a, b) => (a < b ? -1 : 1)));
    expect(new Set(fences).size).toBe(4);
  });

  it('a fence never repeats when the clock of the server goes back', async () => {
    const prefix = freshPrefix();
    const store = open(ioredis(server.url), { prefix });
    const first = attemptAt('clock');
    await store.tryAcquire(first);
    await store.release(first);
    const [counter] = await admin.keys(`${prefix}*:fence`);
    const ahead = 8_999_999_999_999_000n; // What a clock far ahead has left behind.
    await admin.set(counter!, String(ahead));
    const second = attemptAt('clock', { fences: 10 });
    expect(await store.tryAcquire(second)).toEqual({ kind: 'granted', fence: ahead + 1n });
    await store.release(second);
    const third = attemptAt('clock');
    expect(await store.tryAcquire(third)).toEqual({ kind: 'granted', fence: ahead + 11n });
    const next = attemptAt('clock', { fences: 5 });
    const passed = await store.pass!(third, next);
    expect(passed.grant).toEqual({ kind: 'granted', fence: ahead + 12n });
  });

  it('names that only differ in what cannot be written in UTF-8 are different locks', async () => {
    const store = open(ioredis(server.url));
    const names = [
      'a\ud800',
      'a\ud801',
      'a\udc00',
      'a%d800;',
      'a%',
      'a\ufffd',
      'a\0',
      'a\r\n',
      '{a',
      'a}',
      '{}',
      ' ',
    ];
    for (const name of names) {
      expect((await store.tryAcquire(attemptAt(name))).kind, JSON.stringify(name)).toBe('granted');
    }
  });

  it('10,000 names contended once leave one channel and no key but the fence counters', async () => {
    const prefix = freshPrefix();
    const before = (await admin.pubsub('CHANNELS', '*')).length;
    const store = open(ioredis(server.url), { prefix });
    for (let i = 0; i < 10_000; i += 500) {
      const names = Array.from({ length: 500 }, (_, j) => `contended ${i + j}`);
      await Promise.all(
        names.map(async (name) => {
          const [holder, waiter] = [attemptAt(name), attemptAt(name)];
          await store.tryAcquire(holder);
          await store.tryAcquire(waiter);
          await store.release(holder);
          await store.release(waiter);
        }),
      );
    }
    expect((await admin.pubsub('CHANNELS', '*')).length).toBe(before + 1);
    const keys = await admin.keys(`${prefix}*`);
    expect(keys.filter((key) => !key.endsWith(':fence'))).toEqual([]);
    expect(keys.length).toBeLessThanOrEqual(128);
    store.close();
    await until('the channel is gone', async () => {
      return (await admin.pubsub('CHANNELS', '*')).length === before;
    });
  });

  it('warns once when the server may evict locks', async () => {
    const evicting = await startRedis({
      args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'],
    });
    endAfter(() => evicting.stop());
    const warnings: string[] = [];
    const stop = onEvent('lock', (event) => {
      if (event.type === 'store-warning') warnings.push(event.warning);
    });
    const store = open(ioredis(evicting.url));
    for (let i = 0; i < 5; i++) await store.tryAcquire(attemptAt(`evicted ${i}`));
    await until('it warns', () => warnings.length > 0);
    stop();
    expect(warnings).toEqual([expect.stringContaining('allkeys-lru')]);
  });

  it('groups renewals by slot from then on when a single endpoint turns out to hide a cluster', async () => {
    const node = await startRedis({ args: ['--cluster-enabled', 'yes'] });
    endAfter(() => node.stop());
    const operator = ioredis(node.url);
    await operator.cluster('ADDSLOTSRANGE', 0, 16_383);
    await until('it serves', async () => /cluster_state:ok/.test(await operator.cluster('INFO')));
    const store = open(ioredis(node.url));
    const attempts = Array.from({ length: 300 }, (_, i) => attemptAt(`proxied ${i}`));
    await Promise.all(attempts.map((attempt) => store.tryAcquire(attempt)));
    expect(await store.renew(attempts)).toEqual(attempts.map(() => 'ours'));
    expect(await store.renew(attempts)).toEqual(attempts.map(() => 'ours'));
  });
});

describe('replicas', () => {
  it('without enough replicas the lock is given back and the call fails', async () => {
    for (const client of [ioredis(server.url), await nodeRedis(server.url)]) {
      const store = open(client, { replicas: { min: 1, timeoutMs: 50 } });
      const error = await errorOf(store.tryAcquire(attemptAt('waited')));
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'not-applied' });
      expect(error.message).toMatch(/0 of 1 replicas/);
      expect(await store.inspect('waited')).toBeUndefined();
    }
  });

  it('with a replica in step it is granted; who waits asks for itself', async () => {
    await admin.config('SET', 'repl-diskless-sync-delay', '0');
    const replica = await startRedis({ args: ['--replicaof', server.host, String(server.port)] });
    endAfter(() => replica.stop());
    await until('it is linked', async () => /state=online/.test(await admin.info('replication')));
    const store = open(ioredis(server.url), { replicas: { min: 1, timeoutMs: 2_000 } });
    const [holder, waiter] = [attemptAt('safe'), attemptAt('safe')];
    expect((await store.tryAcquire(holder)).kind).toBe('granted');
    expect((await store.tryAcquire(waiter)).kind).toBe('held');
    const told = new Promise((resolve) => void store.watch?.(waiter, resolve));
    await store.release(holder);
    expect(await told).toBeUndefined();
    expect((await store.tryAcquire(waiter)).kind).toBe('granted');
  });

  it('a server without WAIT is an error, or best effort where that was chosen', async () => {
    const args = ['--rename-command', 'WAIT', ''];
    const old = await startRedis({ args });
    endAfter(() => old.stop());
    const strict = open(ioredis(old.url), { replicas: { min: 1 } });
    expect((await errorOf(strict.tryAcquire(attemptAt('old')))).message).toMatch(/unknown command/);
    expect(await strict.inspect('old')).toBeUndefined();
    const easy = open(ioredis(old.url), { replicas: { min: 1, unsupported: 'best-effort' } });
    expect((await easy.tryAcquire(attemptAt('old'))).kind).toBe('granted');
  });
});
