/** Processes that die or freeze in the middle of a critical section. Redis holds the locks. */
import { startRedis, type TestServer } from '@turngate/test-servers';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { pause } from '../support/clock.ts';
import { startChaos } from './conductor.ts';
import { expectRefused } from './expectations.ts';
import { figure } from './figures.ts';
import { redisLeftovers } from './leftovers.ts';
import { describeNeeding } from './needs.ts';
import { repeatedly } from './schedule.ts';

let redis: TestServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis?.stop();
});
afterEach(async () => {
  expect(await redisLeftovers([redis.url])).toEqual([]);
});
const store = () => ({ kind: 'redis', url: redis.url });
const leaseMs = 1_000;

describeNeeding(['redis-server'], 'processes', () => {
  it('undisturbed work: all laws hold', async () => {
    await using chaos = await startChaos({ store: store(), names: ['a', 'b'] });
    await chaos.works(100);
    expect(await chaos.finish({ fences: true, exclusion: true })).toEqual([]);
  });

  it('kill -9 of a holder: the next one gets in within the lease, and no write is lost', async () => {
    await using chaos = await startChaos({ store: store(), leaseMs });
    await repeatedly(async () => {
      const victim = chaos.chance.pick(chaos.alive);
      await victim.holdNext();
      const at = await victim.kill();
      const ms = await chaos.takenOver(at, { but: victim });
      figure('Redis, holder killed, until the next grant (lease 1000 ms)', ms);
      expect(ms).toBeLessThan(leaseMs + 600);
      await chaos.addWorker();
      await chaos.works(10);
    });
    expect(await chaos.finish({ fences: true, exclusion: true })).toEqual([]);
  });

  it('kill -9 at any moment: no waiter is stuck and no write is lost', async () => {
    await using chaos = await startChaos({ store: store(), leaseMs, names: ['a', 'b'] });
    await repeatedly(async () => {
      await pause(chaos.chance.between(0, 120));
      await chaos.replace(chaos.chance.pick(chaos.alive));
    });
    await chaos.works(20);
    expect(await chaos.finish({ fences: true, exclusion: true })).toEqual([]);
  });

  it('SIGSTOP for longer than the lease: the late write is refused, and the holder knows', async () => {
    await using chaos = await startChaos({ store: store(), leaseMs });
    await repeatedly(async () => {
      const victim = chaos.chance.pick(chaos.workers);
      const { id } = await victim.holdNext();
      const at = await victim.freeze();
      const ms = await chaos.takenOver(at, { but: victim, grants: 5 });
      figure('Redis, holder frozen, until the next grant (lease 1000 ms)', ms);
      expect(ms).toBeLessThan(leaseMs + 600);
      victim.goOn();
      victim.thaw();
      await chaos.works(10);
      expectRefused(chaos.turn(id));
    });
    expect(await chaos.finish({ fences: true, exclusion: true })).toEqual([]);
  });
});
