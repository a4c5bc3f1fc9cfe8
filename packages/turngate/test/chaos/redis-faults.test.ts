/** Redis and the way to it fail while processes work under its locks. */
import { startProxy, startRedis, type TestServer } from '@turngate/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import {
  releaseSeveralScript,
  trySeveralScript,
} from '../../src/stores/redis/scripts.generated.ts';
import { pause, until } from '../support/clock.ts';
import { startChaos } from './conductor.ts';
import { expectRefused, expectWritten } from './expectations.ts';
import { figure } from './figures.ts';
import { redisLeftovers } from './leftovers.ts';
import { describeNeeding } from './needs.ts';
import { repeatedly } from './schedule.ts';
import { takeovers } from './takeover.ts';

let redis: TestServer;
let admin: Redis;
beforeAll(async () => {
  redis = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
  admin = new Redis(redis.url, { maxRetriesPerRequest: null });
  admin.on('error', () => {});
});
afterAll(async () => {
  admin?.disconnect();
  await redis?.stop();
});
beforeEach(async () => {
  expect(await redisLeftovers([redis.url])).toEqual([]);
});
const store = (url = redis.url) => ({ kind: 'redis', url });
const leaseMs = 1_000;
const all = { fences: true, exclusion: true };
/** A holder believes for up to a third of its lease in a lock that the server has forgotten. */
const forgetful = { fences: true, exclusion: false };

describeNeeding(['redis-server'], 'Redis', () => {
  it('a holder killed, frozen or cut off: the next one gets in within the lease', async () => {
    const bound = leaseMs + 700;
    const bounds = { killed: bound, frozen: bound, partitioned: bound };
    await takeovers({ name: 'Redis', serverUrl: redis.url, store, leaseMs, ...bounds });
  });

  it('a restart without persistence: holders are told, fences grow on', async () => {
    await using chaos = await startChaos({ store: store(), leaseMs });
    await repeatedly(async () => {
      const holder = chaos.chance.pick(chaos.workers);
      const { id } = await holder.holdNext();
      const at = await chaos.storeLoses(() => redis.kill());
      await redis.restart();
      figure('Redis, restarted without its data', await chaos.takenOver(at, { but: holder }));
      await until('the holder is told', () => chaos.turn(id).some(({ verb }) => verb === 'lost'));
      holder.goOn();
      await chaos.works(20);
      expectRefused(chaos.turn(id));
    });
    expect(await chaos.finish(forgetful)).toEqual([]);
  });

  it('FLUSHALL at any moment: fences grow on', async () => {
    await using chaos = await startChaos({ store: store(), leaseMs, names: ['a', 'b'] });
    await repeatedly(async () => {
      await pause(chaos.chance.between(0, 300));
      await chaos.storeLoses(() => admin.flushall());
      await chaos.works(5);
    });
    expect(await chaos.finish(forgetful)).toEqual([]);
  });

  it('a storm of SCRIPT FLUSH: nobody notices', async () => {
    await using chaos = await startChaos({ store: store(), leaseMs });
    const before = chaos.now();
    await repeatedly(async () => {
      await pause(chaos.chance.between(0, 5));
      await admin.script('FLUSH');
    });
    await chaos.works(20);
    const refused = chaos.lines().filter(({ t, verb, phase }) => {
      return t > before && verb === 'acquire' && phase === 'fail';
    });
    expect(refused).toEqual([]);
    expect(await chaos.finish(all)).toEqual([]);
  });

  it('memory exhausted (noeviction): renewals go on, new locks are refused until it is over', async () => {
    await using chaos = await startChaos({ store: store(), leaseMs, waitMs: 500 });
    const holder = chaos.chance.pick(chaos.workers);
    const { id } = await holder.holdNext();
    await admin.config('SET', 'maxmemory', '1mb');
    await admin.config('SET', 'maxmemory', '1');
    await pause(leaseMs * 1.7);
    holder.goOn();
    await until('its turn ends', () => chaos.turn(id).some(({ verb }) => verb === 'release'));
    expectWritten(chaos.turn(id));
    await admin.config('SET', 'maxmemory', '0');
    await chaos.works(20);
    expect(await chaos.finish(all)).toEqual([]);
  });

  it('a read-only server for two seconds: the holder lets go in time, work goes on after it', async () => {
    await using chaos = await startChaos({ store: store(), leaseMs });
    const holder = chaos.chance.pick(chaos.workers);
    const { id } = await holder.holdNext();
    // A replica of nobody: it keeps its data and refuses writes.
    await admin.call('REPLICAOF', '127.0.0.1', '1');
    await pause(2_000);
    holder.goOn();
    await until('its turn ends', () => chaos.turn(id).some(({ verb }) => verb === 'effect'));
    await admin.call('REPLICAOF', 'NO', 'ONE');
    await chaos.works(20);
    const codes = chaos.turn(id).map(({ verb, code }) => `${verb} ${code ?? ''}`);
    expect(codes).toContain('effect LOCK_LOST');
    expect(await chaos.finish(all)).toEqual([]);
  });

  it('the server stands still for longer than the lease: nobody holds for two', async () => {
    await using chaos = await startChaos({ store: store(), leaseMs });
    await repeatedly(async () => {
      const holder = chaos.chance.pick(chaos.workers);
      const { id } = await holder.holdNext();
      await redis.pause();
      await pause(leaseMs * 1.5);
      await redis.resume();
      await chaos.takenOver(chaos.now(), { but: holder, grants: 3 });
      holder.goOn();
      await chaos.works(10);
      expectRefused(chaos.turn(id));
    });
    expect(await chaos.finish(all)).toEqual([]);
  });

  it('connections cut again and again, in the middle of commands', async () => {
    await using proxy = await startProxy(redis.url);
    await using chaos = await startChaos({ store: store(proxy.url), leaseMs });
    await repeatedly(async () => {
      await pause(chaos.chance.between(20, 250));
      proxy.cut();
    });
    await chaos.works(20);
    expect(await chaos.finish(all)).toEqual([]);
  });

  it('many names asked for in one tick, while connections are cut and scripts forgotten', async () => {
    await using proxy = await startProxy(redis.url);
    const names = Array.from({ length: 8 }, (_, i) => `many ${i}`);
    const options = { names, tasks: 12, workers: 3, inStep: true };
    await using chaos = await startChaos({ store: store(proxy.url), leaseMs, ...options });
    await repeatedly(async () => {
      await pause(chaos.chance.between(20, 250));
      if (chaos.chance.between(0, 1) === 0) await admin.script('FLUSH');
      else proxy.cut();
    });
    await chaos.workers[0]?.kill();
    await chaos.works(40);
    const known = ({ sha1 }: { sha1: string }): Promise<unknown> => admin.script('EXISTS', sha1);
    for (const script of [trySeveralScript, releaseSeveralScript]) {
      await expect.poll(() => known(script), { timeout: 10_000 }).toEqual([1]);
    }
    expect(await chaos.finish(all)).toEqual([]);
  });
});
