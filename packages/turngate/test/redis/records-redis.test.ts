/** Records in Redis: leases, take-over, lost answers, trips, and operations over them. */
import { startRedis } from '@turngate/test-servers';
import { describe, expect, it } from 'vitest';
import { claimOf, door, expectKind, freshId } from '../../src/conformance/record-target.ts';
import type { WorkResult } from '../../src/contract/record-store.ts';
import { createGate, type IdempotencyEvent, onEvent } from '../../src/index.ts';
import { redisLocks, redisRecords } from '../../src/stores/redis/index.ts';
import { pause } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { describeWith, serverUrl } from '../support/servers.ts';
import { endAfter, freshPrefix, ioredis } from './support.ts';

const done: WorkResult = { state: 'done', result: '1"done"' };

describeWith('redis', 'records in Redis', () => {
  const connect = (options: object = {}) => {
    const client = ioredis(serverUrl('redis'));
    let trips = 0;
    const send = client.sendCommand.bind(client);
    client.sendCommand = (...args: Parameters<typeof send>) => {
      trips++;
      return send(...args);
    };
    return {
      client,
      store: redisRecords(client, { prefix: freshPrefix(), ...options }),
      tripsOf: async (work: () => Promise<unknown>): Promise<number> => {
        const before = trips;
        await work();
        return trips - before;
      },
    };
  };

  it('a first call takes two trips, a repeat one, an attempt at running work one', async () => {
    const { store, tripsOf } = connect();
    await store.attempt(claimOf(freshId()), async () => done); // Loads the scripts.
    const id = freshId();
    expect(await tripsOf(() => store.attempt(claimOf(id), async () => done))).toBe(2);
    expect(await tripsOf(() => store.attempt(claimOf(id), async () => done))).toBe(1);
    expect(await tripsOf(() => store.read(id))).toBe(1);
    const held = door();
    const other = freshId();
    const running = store.attempt(claimOf(other), async () => {
      await held.opened;
      return done;
    });
    expect(
      await tripsOf(async () =>
        expectKind(await store.attempt(claimOf(other), async () => done), 'busy'),
      ),
    ).toBe(1);
    held.open();
    await running;
  });

  it('on a server that knows no SET with NX and GET it claims by a script, and asks only once', async () => {
    const { client, store, tripsOf } = connect();
    const send = client.sendCommand.bind(client);
    let refused = 0;
    client.sendCommand = (...[command, ...rest]: Parameters<typeof send>) => {
      if (command.name.toLowerCase() !== 'set') return send(command, ...rest);
      refused++; // As Redis 6.2 does.
      command.reject(new Error('ERR syntax error'));
      return command.promise;
    };
    for (let i = 0; i < 3; i++) {
      const id = freshId();
      expectKind(await store.attempt(claimOf(id), async () => done), 'ran');
      expectKind(await store.attempt(claimOf(id), async () => done), 'found');
    }
    expect(refused).toBe(1);
    expect(await tripsOf(() => store.attempt(claimOf(freshId()), async () => done))).toBe(2);
  });

  it('a claim is kept alive while its work runs, far beyond its lease', async () => {
    const { store } = connect({ leaseMs: 300 });
    const id = freshId();
    const first = store.attempt(claimOf(id), async () => {
      await pause(1_200);
      return done;
    });
    for (let i = 0; i < 8; i++) {
      await pause(120);
      expectKind(await store.probe(claimOf(id)), 'busy');
    }
    expectKind(await first, 'ran');
  });

  it('a claim whose process is gone is taken over after its lease, not before', async () => {
    const prefix = freshPrefix();
    const gone = connect({ prefix, leaseMs: 600 });
    const id = freshId();
    const never = gone.store.attempt(claimOf(id), () => new Promise<WorkResult>(() => {}));
    never.catch(() => undefined);
    const { store } = connect({ prefix, leaseMs: 600 });
    await expect.poll(async () => (await store.probe(claimOf(id))).kind).toBe('busy');
    gone.client.disconnect(); // It cannot renew any more.
    expectKind(await store.attempt(claimOf(id), async () => done), 'busy');
    await expect
      .poll(async () => (await store.attempt(claimOf(id), async () => done)).kind)
      .toBe('ran');
  });

  it('work that lost its lease to another cannot put its result over the other’s, and is told', async () => {
    const prefix = freshPrefix();
    const { store, client } = connect({ prefix, leaseMs: 60_000 });
    const id = freshId();
    const held = door();
    const started = door();
    const slow = store.attempt(claimOf(id), async () => {
      started.open();
      await held.opened;
      return { state: 'done', result: '1"slow"' };
    });
    await started.opened;
    for (const key of await client.keys(`${prefix}record:*`)) await client.del(key); // The lease is over.
    const other = await store.attempt(claimOf(id), async () => ({
      state: 'done',
      result: '1"other"',
    }));
    expectKind(other, 'ran');
    held.open();
    const error = await rejection(slow, 'LEASE_LOST');
    expect(error['outcome']).toBe('applied');
    expect((await store.read(id))?.result).toBe('1"other"');
  });

  it('work that lost its lease while another runs does not disturb it', async () => {
    const prefix = freshPrefix();
    const { store, client } = connect({ prefix, leaseMs: 60_000 });
    const id = freshId();
    const doors = [door(), door(), door(), door()] as const;
    const run = (i: 0 | 1, end: () => WorkResult) =>
      store.attempt(claimOf(id), async () => {
        doors[i].open();
        await doors[i + 2]!.opened;
        return end();
      });
    const failing = run(0, () => {
      throw new Error('boom');
    });
    await doors[0].opened;
    for (const key of await client.keys(`${prefix}record:*`)) await client.del(key);
    const second = run(1, () => done);
    await doors[1].opened;
    doors[2].open();
    await expect(failing).rejects.toThrow('boom');
    expectKind(await store.probe(claimOf(id)), 'busy'); // Its release was not its own to do.
    doors[3].open();
    expectKind(await second, 'ran');
  });

  it('a lapsed claim that nobody took is finished all the same: the work was done', async () => {
    const prefix = freshPrefix();
    const { store, client } = connect({ prefix, leaseMs: 60_000 });
    const id = freshId();
    const attempt = await store.attempt(claimOf(id), async () => {
      for (const key of await client.keys(`${prefix}record:*`)) await client.del(key);
      return done;
    });
    const { record } = expectKind(attempt, 'ran');
    expect(await store.read(id)).toEqual(record);
  });

  it('a claim that the client sent twice, because the answer was lost, is still its own', async () => {
    const prefix = freshPrefix();
    const { store, client } = connect({ prefix });
    const claim = claimOf(freshId());
    await store.attempt(claim, async () => done);
    const [key = ''] = await client.keys(`${prefix}record:*`);
    await client.set(key, `r${claim.owner} ${claim.fingerprint}`); // As the first sending left it.
    expectKind(await store.attempt(claim, async () => done), 'ran');
  });

  it('what is not a record under its name is not run over', async () => {
    const prefix = freshPrefix();
    const { store, client } = connect({ prefix });
    const id = freshId();
    await store.attempt(claimOf(id), async () => done);
    const [key = ''] = await client.keys(`${prefix}record:*`);
    await client.set(key, 'something else');
    await rejection(
      store.attempt(claimOf(id), async () => done),
      'RECORD_UNREADABLE',
    );
  });

  it('operations: once over two processes, a repeat replays, another payload is refused, within is not there', async () => {
    const prefix = freshPrefix();
    let runs = 0;
    const open = () => {
      const gate = createGate({
        records: redisRecords(ioredis(serverUrl('redis')), { prefix }),
        locks: redisLocks(ioredis(serverUrl('redis')), { prefix }),
      });
      endAfter(() => gate.close());
      return gate.operation({
        name: 'mail.send',
        key: ({ mailId }: { mailId: string; text: string }) => mailId,
        async run({ text }) {
          runs++;
          await pause(20);
          return { sent: text, at: new Date(0) };
        },
      });
    };
    const [one, two] = [open(), open()];
    const input = { mailId: 'm1', text: 'hello' };
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, i) => (i % 2 ? one : two)(input)),
    );
    expect(runs).toBe(1);
    expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1);
    for (const { value } of outcomes) expect(value).toEqual({ sent: 'hello', at: new Date(0) });
    await rejection(two({ ...input, text: 'other' }), 'IDEMPOTENCY_KEY_REUSED');
    await rejection(one.within(undefined, { ...input, mailId: 'm2' }), 'TRANSACTION_REQUIRED');
    expect(runs).toBe(1);
  });

  it('options are checked before anything is sent', () => {
    const client = ioredis(serverUrl('redis'));
    expect(() => redisRecords(client, { leaseMs: 1 })).toThrow(/leaseMs/);
    expect(() => redisRecords(client, { lease: 1 } as object)).toThrow(/unknown option/);
    expect(() => redisRecords(client, { prefix: 'a{b}' })).toThrow(/prefix/);
    expect(() => redisRecords({} as never)).toThrow(/client/);
    const { capabilities } = redisRecords(client, { durable: true });
    expect(capabilities).toEqual({ atomicWithEffect: false, durable: true, shared: true });
  });
});

describe.skipIf(serverUrl('redis') === '')('records on a Redis server of their own', () => {
  it('warn once of a server that evicts, where somebody listens', async () => {
    const server = await startRedis();
    endAfter(() => server.stop());
    const client = ioredis(server.url);
    await client.config('SET', 'maxmemory', '100mb');
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const store = redisRecords(client, { prefix: freshPrefix() });
    await store.attempt(claimOf(freshId()), async () => done); // Nobody listens yet.
    const warnings: IdempotencyEvent[] = [];
    endAfter(
      onEvent('idempotency', (event) => event.type === 'store-warning' && warnings.push(event)),
    );
    for (let i = 0; i < 3; i++) await store.attempt(claimOf(freshId()), async () => done);
    await expect.poll(() => warnings.length).toBe(1);
    expect(warnings[0]).toMatchObject({ warning: expect.stringContaining('allkeys-lru') });
  });

  it('a result that meets a server which is away is stored when it is back within the lease', async () => {
    const server = await startRedis();
    endAfter(() => server.stop());
    const client = ioredis(server.url, { maxRetriesPerRequest: 0, retryStrategy: () => 50 });
    const store = redisRecords(client, { prefix: freshPrefix(), leaseMs: 20_000 });
    const id = freshId();
    const attempt = await store.attempt(claimOf(id), async () => {
      await server.kill();
      void pause(300).then(() => server.restart());
      return done;
    });
    expectKind(attempt, 'ran');
    await expect
      .poll(async () => (await store.read(id).catch(() => undefined))?.result)
      .toBe(done.result);
  });

  it('an unreachable server refuses before the work, and says that nothing was done', async () => {
    const client = ioredis('redis://127.0.0.1:1', {
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
    });
    const store = redisRecords(client);
    const error = await rejection(
      store.attempt(claimOf(freshId()), async () => {
        throw new Error('must not run');
      }),
      'STORE_UNAVAILABLE',
    );
    expect(error['outcome']).toBe('not-applied');
  });
});
