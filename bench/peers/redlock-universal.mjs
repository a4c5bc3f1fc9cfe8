// redlock-universal in its two modes. Its health check lives in the lock object: one object per key.
import { createLock, executeWithAutoExtension, IoredisAdapter } from 'redlock-universal';
import { openClient } from './clients.mjs';
import { gateUntil, inSlices, POLL_MS, triesFor } from './settings.mjs';

const inMode = (performance) => ({
  async open({ port, leaseMs, patientMs }) {
    const { client, close } = await openClient('ioredis5', port);
    const adapter = new IoredisAdapter(client);
    const patience =
      patientMs === undefined ? {} : { retryAttempts: triesFor(patientMs), retryDelay: POLL_MS };
    return {
      close,
      async acquire(key) {
        const lock = createLock({ adapter, key, ttl: leaseMs, performance, ...patience });
        const handle = await lock.acquire();
        return () => lock.release(handle);
      },
    };
  },
  async hold({ port, keys, leaseMs, everyMs }) {
    const { client, close } = await openClient('ioredis5', port);
    const adapter = new IoredisAdapter(client);
    const extensionThresholdRatio = (leaseMs - everyMs) / leaseMs;
    const end = gateUntil();
    let lost = 0;
    const runs = [];
    await inSlices(keys, async (key) => {
      const lock = createLock({ adapter, key, ttl: leaseMs, performance });
      const handles = [await lock.acquire()];
      const routine = (signal) => {
        signal.addEventListener('abort', () => lost++);
        return end.opened;
      };
      const terms = { locks: [lock], handles, ttl: leaseMs, extensionThresholdRatio, routine };
      runs.push(executeWithAutoExtension(terms));
    });
    return {
      async stop() {
        end.open();
        await Promise.allSettled(runs);
        await close();
        return lost;
      },
    };
  },
});

export const standard = inMode('standard');
export const lean = inMode('lean');
