/** Redis counts leases by its wall clock, and somebody sets that clock. */
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { canShiftClocks, startShiftableRedis } from './clock-shift.ts';
import { startChaos } from './conductor.ts';
import { repeatedly } from './schedule.ts';

const possible = canShiftClocks();
if (!possible) console.warn('SKIPPED "the clock of Redis": no gcc on Linux');

describe.skipIf(!possible)('the clock of Redis', () => {
  it('set ahead and back by an hour under load: leases end early or late, fences grow on', async () => {
    await using world = await startShiftableRedis();
    const admin = new Redis(world.redis.url);
    const store = { kind: 'redis', url: world.redis.url };
    await using chaos = await startChaos({ store, names: ['a', 'b'] });
    const serverSeconds = async () => Number((await admin.time())[0]);
    await repeatedly(async () => {
      const before = await serverSeconds();
      // All leases that run end at once.
      await chaos.storeLoses(async () => world.shiftSeconds(3_600));
      await chaos.works(10);
      expect(await serverSeconds()).toBeGreaterThanOrEqual(before + 3_600);
      world.shiftSeconds(0);
      await chaos.works(10);
      expect(await serverSeconds()).toBeLessThan(before + 3_600);
    });
    admin.disconnect();
    expect(await chaos.finish({ fences: true, exclusion: false })).toEqual([]);
  });
});
